"""
Asks a data service by the library libmsf, from a checkout of it:

    python3 libmsf_client.py CHECKOUT URL TOKEN

Prints what it made of the answers, as JSON.
"""

import json
import sys
from dataclasses import asdict

checkout, url, token = sys.argv[1:]
sys.path.insert(0, checkout)

from libmsf.rest import MsfRestApi  # noqa: E402

api = MsfRestApi(api_key=token, api_url=url)


def rows(found, *keys):
    return [{key: asdict(row)[key] for key in keys} for row in found]


print(
    json.dumps(
        {
            "workspaces": rows(api.get_workspaces(), "id", "name", "limit_to_network", "created_at"),
            "hosts": rows(api.get_hosts("default"), "id", "address", "state", "os_name", "name", "created_at"),
            "shown": asdict(api.get_host_by_id(host_id=1)),
            "services": rows(api.get_services("default"), "port", "proto", "state", "name", "info"),
            "vulns": rows(api.get_vulns("default"), "name", "info", "refs"),
            "notes": rows(api.get_notes("default"), "ntype", "data"),
            "loots": api.get_loots("default"),
            "credentials": api.get_creds("default"),
            "logins": api.get_logins(),
        },
        default=str,
    )
)
