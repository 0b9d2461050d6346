# SPDX-License-Identifier: MIT
# need_packages NAME...: installs the missing ones of these Debian or Ubuntu packages. Source this file.

need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        echo "this is not Debian or Ubuntu, so no package is installed; needed, by their Debian names: $*"
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
            echo "missing packages: ${missing[*]}; run this as root, install sudo, or install them yourself" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    echo "installing ${missing[*]} ..."
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y \
        --no-install-recommends "${missing[@]}" >/dev/null
}
