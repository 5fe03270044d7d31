#!/usr/bin/env python3
"""Approves expense reports, up to 1000 EUR for each conversation group."""
import json
import sys


def handle(batch):
    state = batch["state"] or {"approved": 0}
    actions = []
    for message in batch["messages"]:
        if message["message_type_name"] != "//expenses/Report":
            continue  # EndDialog and Error: with auto_end the conversation is ended anyway
        report = json.loads(message["message_body"])
        dialog = {"conversation_handle": message["conversation_handle"]}
        if state["approved"] + report["amount"] <= 1000:
            state["approved"] += report["amount"]
            answer = {"approved": True, "total": state["approved"]}
        else:
            answer = {"approved": False, "reason": "over the limit"}
        actions.append({"send": {**dialog, "message_type": "//expenses/Answer", "message_body": answer}})
        print("answered", report["number"], file=sys.stderr)  # goes to the log
    return {"state": state, "actions": actions}


for line in sys.stdin.buffer:
    print(json.dumps(handle(json.loads(line))), flush=True)
