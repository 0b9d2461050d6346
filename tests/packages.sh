# SPDX-License-Identifier: MIT
# need_packages NAME...: installs the Debian or Ubuntu packages that are missing; does nothing when none is. Sourced.

need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "This is no Debian or Ubuntu: nothing is installed. Needed, under their Debian names: $*"
        return 0
    fi
    local missing=() package
    for package in "$@"; do
        if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if ((${#missing[@]} == 0)); then
        return 0
    fi

    local as_root=()
    if ((EUID != 0)); then
        if ! command -v sudo >/dev/null; then
            echo "Missing packages: ${missing[*]}. Run this as root, or install sudo, or install them yourself." >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "Installing ${missing[*]} ..."
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y \
        --no-install-recommends "${missing[@]}" >/dev/null
}
