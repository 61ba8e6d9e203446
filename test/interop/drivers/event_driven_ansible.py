"""
Runs the event source `webhook` of a checkout of Event-Driven Ansible:

    python3 event_driven_ansible.py CHECKOUT ARGUMENTS

ARGUMENTS is what a rulebook would give it, as JSON. Prints each event that it hands on, one line of JSON each.
"""

import asyncio
import importlib.util
import json
import os
import sys

checkout, arguments = sys.argv[1:]
path = os.path.join(checkout, "extensions", "eda", "plugins", "event_source", "webhook.py")
spec = importlib.util.spec_from_file_location("webhook", path)
webhook = importlib.util.module_from_spec(spec)
spec.loader.exec_module(webhook)


class Printing(asyncio.Queue):
    async def put(self, event):
        print(json.dumps(event), flush=True)


asyncio.run(webhook.main(Printing(), json.loads(arguments)))
