# The activator and nothing else: one static program, no shell, not root. It writes no files, so it runs read-only.
# Settings come as SBACTIVATOR_… and PG… variables, or in /sbactivator.yaml.
ARG GO_VERSION=1.26
FROM golang:${GO_VERSION} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# .git comes along for `sbactivator version`.
COPY . .
RUN git config --global --add safe.directory /src \
 && CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /sbactivator ./cmd/sbactivator

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /sbactivator /sbactivator
USER 65532:65532
HEALTHCHECK --interval=5s --timeout=6s --start-period=60s CMD ["/sbactivator", "health"]
ENTRYPOINT ["/sbactivator"]
CMD ["run"]
