# SPDX-License-Identifier: BSD-3-Clause
"""block_delay.py - what the delays of an application's blocks say: which of them count, over which path they went, whether a finding holds"""

NOT_TESTABLE = "not testable: mainline lacks the mechanisms"


def settled(sent, ages, head):
    """The ages of the blocks that were sent `head` seconds after the first one or later, when the buffers have filled."""
    return [age for time, age in zip(sent, ages) if time >= head]


def rate_mbit(sent, ages, head, size):
    """The bits of these blocks a second, in Mbit/s, by when they arrived: between the first arrival and the last one."""
    arrivals = [time + age / 1000 for time, age in zip(sent, ages) if time >= head]
    return (len(arrivals) - 1) * size * 8e-6 / (arrivals[-1] - arrivals[0])


def carried(before, after, counter="out_bytes"):
    """{link: what it has carried towards the server} from the counters of all links, before and afterwards."""
    return {link: after[link]["a-to-b"][counter] - before[link]["a-to-b"][counter] for link in after}


def share(parts, name):
    """The share that one of the parts has of their sum; 0 of nothing."""
    total = sum(parts.values())
    return parts[name] / total if total else 0.0


def idle_paths(parts, least):
    """The names of the paths that carried less than that many bytes: a handshake and probes, but no data to speak of."""
    return sorted(name for name, count in parts.items() if count < least)


def verdict(holds):
    """How a finding of a document is called, by whether ours agree with it."""
    return "confirmed" if holds else "contradicted"


def verdict_by_way(holds):
    """The same for a finding on several ways, {way: does it hold?}: one word where they agree."""
    words = {way: verdict(each) for way, each in holds.items()}
    return words[next(iter(words))] if len(set(words.values())) == 1 else "; ".join("%s: %s" % pair for pair in words.items())


def verdict_without(holds):
    """The same for a finding about mechanisms that are missing here: it can be confirmed without them, but not contradicted."""
    return "confirmed, without them" if holds else NOT_TESTABLE
