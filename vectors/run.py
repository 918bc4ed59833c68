"""Runs the vectors against the script on a Redis, with redis-py:
`npx nestjs-sluice call --script > sluice.lua`, then `python3 run.py sluice.lua redis://localhost:6379`.
Exits with 1 if a reply differs.
"""
import json
import os
import pathlib
import re
import sys
import time

import redis

script = sys.argv[1] if len(sys.argv) > 1 else 'sluice.lua'
url = sys.argv[2] if len(sys.argv) > 2 else 'redis://localhost:6379'
client = redis.Redis.from_url(url)
sha = client.script_load(pathlib.Path(script).read_text(encoding='utf-8'))
prefix = 'vectors-%d-%d' % (os.getpid(), time.time_ns())
ran = wrong = 0


def is_same(expected, reply):
    """A `*` stands for any number: that of held units is the server's."""
    if expected is None:
        return True
    return len(expected) == len(reply) and all(each in ('*', got) for each, got in zip(expected, reply))


for path in sorted(pathlib.Path(__file__).parent.glob('*.json')):
    for case in json.loads(path.read_text(encoding='utf-8'))['cases']:
        replies = {}
        for index, step in enumerate(case['steps']):
            call = step.get('redis')
            if call is None:
                continue
            keys = [key.replace('vectors', prefix, 1) for key in call['keys']]
            program = re.sub(r'\{(\d+)\.(\d+)\}', lambda at: str(replies[int(at[1])][int(at[2])]), call['program'])
            reply = replies[index] = client.evalsha(sha, len(keys), *keys, program)
            ran += 1
            if not is_same(call.get('reply'), reply):
                wrong += 1
                print('%s: %s: step %d: expected %s, received %s' % (path.name, case['name'], index, call['reply'], reply))

print('%d steps, %d different' % (ran, wrong))
sys.exit(1 if wrong or not ran else 0)
