# SPDX-License-Identifier: MIT
# Installs Debian and Ubuntu packages that are missing. Source this file.
#
#   need_packages NAME...   packages without which the caller cannot go on
#   need_servers NAME...    servers that tests start by themselves. Debian starts a server when it is installed, and at every
#                           boot; here it does neither. If they cannot be installed, it says so, and their tests are skipped

# Sets `missing` to those packages that are not installed.
find_missing() {
    local package
    missing=()
    for package in "$@"; do
        if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
}

can_be_root() { ((EUID == 0)) || command -v sudo >/dev/null; }

as_root() {
    if ((EUID == 0)); then
        "$@"
    else
        sudo "$@"
    fi
}

# Installs the packages in `missing`.
install_missing() {
    if ! can_be_root; then
        echo "missing packages: ${missing[*]}; run this as root, install sudo, or install them yourself" >&2
        return 1
    fi
    echo "installing ${missing[*]} ..."
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends \
        "${missing[@]}" >/dev/null
}

need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "this is not Debian or Ubuntu, so no package is installed; needed, by their Debian names: $*"
        return 0
    fi
    local missing
    find_missing "$@"
    ((${#missing[@]} == 0)) || install_missing
}

# Installs the packages in `missing` without starting them.
install_stopped() {
    local policy=/usr/sbin/policy-rc.d is_ours=false
    # Debian asks this file whether a package may start its server; 101 is no.
    if can_be_root && [[ ! -e $policy ]]; then
        is_ours=true
        printf '#!/bin/sh\nexit 101\n' | as_root install -m 755 /dev/stdin "$policy"
    fi
    install_missing && echo "these servers are not running, and do not start at boot"
    if $is_ours; then
        as_root rm -f "$policy"
    fi
    if can_be_root && [[ -d /run/systemd/system ]]; then
        as_root systemctl disable --quiet "${missing[@]}" || true
    fi
}

need_servers() {
    if ! command -v dpkg-query >/dev/null; then
        echo "tests that need a server are skipped unless it is installed; needed, by their Debian names: $*"
        return 0
    fi
    local missing
    find_missing "$@"
    if ((${#missing[@]} > 0)); then
        install_stopped || true
        find_missing "$@"
    fi
    if ((${#missing[@]} > 0)); then
        echo "could not install ${missing[*]}: the tests that need them are skipped"
    fi
}
