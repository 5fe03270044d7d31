package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthTimeout is longer than /readyz may take to find out that the database does not answer.
const healthTimeout = 5 * time.Second

func newHealthCommand() *cobra.Command {
	var alive bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask the activator at http.listen whether it is ready",
		Long: `Ask the activator at http.listen whether it is ready, as /readyz answers, with exit code 0 or 1 and the reasons:
the health check of a container that has no shell and no curl.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			path := "/readyz"
			if alive {
				path = "/healthz"
			}
			answer, err := askHealth(cmd.Context(), config.HTTP.Listen, path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), answer)
			return err
		},
	}
	cmd.Flags().BoolVar(&alive, "alive", false, "ask only whether the process lives, as /healthz answers")
	return cmd
}

// askHealth returns what the activator at the address says when it says yes.
func askHealth(ctx context.Context, address, path string) (string, error) {
	if address == "" {
		return "", configErrorf("http.listen is empty, so that no activator can be asked")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(cmp.Or(host, "localhost"), port) + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	// A connection to ourselves: no proxy, and none to keep.
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return "", err
	}
	answer := strings.TrimSpace(string(body))
	if response.StatusCode != http.StatusOK {
		return "", errors.New(cmp.Or(answer, response.Status))
	}
	return answer, nil
}
