"""Events as lines of JSON: `events.jsonl`, the newest, and beside it the files that were full before."""
