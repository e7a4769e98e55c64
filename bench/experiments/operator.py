# SPDX-License-Identifier: BSD-3-Clause
"""operator - what a core carries and a connection occupies: convertd beside haproxy, nginx, dante, shadowsocks and microsocks

Client, proxy and server are on veth pairs without a limit, so CPU and memory are measured. Each system has its own lab; all
are measured in turn, in several rounds. Connections are opened and stay: 10 of them, then 100, up to 9,000. At each number

- we read their memory while they are idle. User space is the memory of the proxy's processes (Pss). The kernel's part is the growth of
  its objects, stacks and page tables, less that of client and server. The kernel takes memory in pieces larger than a few connections
  need, so the table gives its part from KERNEL_FROM connections on;
- we open others, NEW at a time, each with one small request and its response: new connections a second beside the idle ones;
- all of them ask for OBJECT bytes again and again: goodput with that many active connections.

"For each core" is the figure divided by the CPU seconds charged to the proxy itself meanwhile. Within one machine the kernel charges a
packet's reception to its sender, and kernel workers do a part of Multipath TCP's work, which nobody is charged with.
This is alike for all systems; another table shows it by the CPU time of the whole machine, and its excess over a run
without a proxy.

The rate of connections is given as a share of the rate without a proxy: on two cores
client and server need most of the CPUs themselves. So growth with the number of workers shows in the CPU time of each connection, which
should stay constant, rather than in the rate.
"""
from benchlib import median, processes
from benchlib.field import Field
from benchlib.proxies import Convertd, Dante, Direct, Haproxy, Microsocks, Nginx, Shadowsocks, available
from convertlab import LabError
from models import operator as model

DURATION = "14 minutes"
NEEDS = ("bench-peers",)

PROXIES = (Direct, Convertd, Haproxy, Nginx, Dante, Shadowsocks, Microsocks)
COUNTS, COUNTS_QUICK = (10, 100, 1000, 3000, 9000), (10, 100)
MEMORY_COUNTS_QUICK = (10, 100, 1000)
KERNEL_FROM = 1000
TYPICAL, TYPICAL_QUICK = 1000, 100   # connections that are open where one figure stands for all
WORKERS, WORKERS_QUICK = (1, 2, 4), (1, 2)
ROUNDS, ROUNDS_QUICK = 3, 1
SECONDS, SECONDS_QUICK = 1, 0.25
WARMUP, WARMUP_QUICK = 0.2, 0.05
NEW = 64                             # connections that are being made at a time
REQUEST, RESPONSE = 100, 1000        # bytes, of new connections
OBJECT = 64000                       # bytes that active connections ask for
CONGESTION = "reno"                  # which every kernel has
DESCRIPTORS = 20000                  # of each process
SPARE = 1000                         # of these, for new connections and the program itself


def _word(mptcp):
    return "MPTCP" if mptcp else "TCP"


class Measured:
    """What was measured of one system, by the number of connections: memory as lists, Results by the round."""

    def __init__(self):
        self.user, self.kernel, self._new, self._busy = {}, {}, {}, {}

    def add(self, count, number, new, busy):
        """Keeps the Results of a round."""
        self._new.setdefault(count, {})[number] = new
        self._busy.setdefault(count, {})[number] = busy

    @property
    def new(self):
        """{connections: Results of new connections}"""
        return {count: list(rounds.values()) for count, rounds in self._new.items()}

    @property
    def busy(self):
        """{connections: Results of these connections when active}"""
        return {count: list(rounds.values()) for count, rounds in self._busy.items()}

    def counts(self):
        """The numbers of connections for which there are samples."""
        return sorted(self._new)

    def rate(self, count):
        """New connections a second."""
        return median([result.rate for result in self.new[count]])

    def gbit(self, count):
        """Goodput."""
        return median([result.gbit for result in self.busy[count]])

    def of_direct(self, direct, count):
        """(new connections a second, goodput), as the median of the shares within each round."""
        # pylint: disable=protected-access
        def share(own, other, figure):
            ratios = [figure(own[number]) / figure(other[number]) for number in own if number in other and figure(other[number])]
            return median(ratios) if ratios else 0

        return (share(self._new[count], direct._new[count], lambda result: result.rate),
                share(self._busy[count], direct._busy[count], lambda result: result.gbit))

    def p99_ms(self, count):
        """Of new connections, from connect() to the last byte."""
        return median([result["latency"].get("p99", 0) for result in self.new[count]]) / 1000

    def connection_us(self, count, whose="proxy_cpu"):
        """CPU microseconds of a new connection, in each round."""
        return [result.cpu_us_per_connection(whose) for result in self.new[count]]

    def cpu_per_gb(self, count, whose="proxy_cpu"):
        """CPU seconds for 10^9 bytes, in each round."""
        return [result.cpu_per_gb(whose) for result in self.busy[count]]

    def rates_per_core(self, count):
        """New connections for each CPU second of the proxy's, in each round."""
        return [model.per_core(result["opened"], result["proxy_cpu"]) for result in self.new[count]]

    def gbits_per_core(self, count):
        """Gbit for each CPU second of the proxy's, in each round."""
        return [model.gbit_per_core(result["bytes_all"], result["proxy_cpu"]) for result in self.busy[count]]

    def results(self):
        """All that the generator has returned."""
        return [result for kept in (self.new, self.busy) for results in kept.values() for result in results]


class Plan:
    """The sizes of a run, and its systems."""

    def __init__(self, bench):
        quick = bench.quick
        self.bench = bench
        self.rounds = ROUNDS_QUICK if quick else ROUNDS
        self.seconds = SECONDS_QUICK if quick else SECONDS
        self.warmup = WARMUP_QUICK if quick else WARMUP
        self.workers = WORKERS_QUICK if quick else WORKERS
        self.typical = TYPICAL_QUICK if quick else TYPICAL
        allowed = (processes.room_for_descriptors(DESCRIPTORS) - SPARE) // 2
        self.counts = [count for count in (COUNTS_QUICK if quick else COUNTS) if count <= allowed]
        self.memory_counts = [count for count in (MEMORY_COUNTS_QUICK if quick else COUNTS) if count <= allowed]
        if allowed < COUNTS[-1]:
            bench.remark("Files that a process may have open (ulimit -Hn) are too few for more than %d connections here." % allowed)
        self.kinds = {mptcp: available(bench, PROXIES, mptcp) for mptcp in (False, True)}
        bench.setting("rounds", self.rounds)
        bench.setting("seconds each", self.seconds)
        bench.setting("new connections at a time", NEW)
        bench.setting("bytes of their request and its response", "%d and %d" % (REQUEST, RESPONSE))
        bench.setting("bytes that active connections ask for", OBJECT)
        bench.setting("congestion control in the lab", CONGESTION)

    def steps(self):
        """All steps of a run: (round, MPTCP to the proxy, kind of proxy, its workers or None). Those with workers are about them."""
        for number in range(self.rounds):
            for mptcp, kinds in self.kinds.items():
                for kind in kinds:
                    yield number, mptcp, kind, None
            for mptcp, kinds in self.kinds.items() if not self.bench.quick else ((False, self.kinds[False]),):
                for workers in self.workers:
                    for kind in kinds:
                        if kind.has_threads or (kind is Direct and workers == self.workers[0]):
                            yield number, mptcp, kind, workers

    def label(self, step):
        """A step for people."""
        number, mptcp, kind, workers = step
        return "round %d of %d: %s, %s%s" % (number + 1, self.rounds, kind.name, _word(mptcp), ", %d workers" % workers if workers else "")

    def weight(self, step):
        """How long it takes, compared with others."""
        return len(self.counts) + 1 if step[3] is None else 1

    def options(self):
        """The generator's time."""
        return ["--seconds", self.seconds, "--warmup", self.warmup]


def _measure_memory(lab, proxy, plan, measured):
    """More and more connections, all of which stay: what they have added in user space and in the kernel."""
    processes.settle_kernel_memory()
    user, kernel, held = proxy.memory_kb(), processes.kernel_memory_kb(), []
    try:
        for before, count in zip([0] + plan.memory_counts, plan.memory_counts):
            held.append(lab.hold(proxy, count - before))
            measured.user.setdefault(count, []).append(proxy.memory_kb() - user)
            measured.kernel.setdefault(count, []).append(processes.kernel_memory_kb() - kernel)
    finally:
        for connections in held:
            connections.close()


def _measure_work(lab, proxy, plan, measured, number, count):
    """New connections while so many are idle, then goodput of these."""
    with lab.hold(proxy, count, "--request", REQUEST, "--response", OBJECT, *plan.options()) as held:
        new = lab.load(proxy, "--concurrency", NEW, "--request", REQUEST, "--response", RESPONSE, *plan.options())
        busy = held.be_busy()
    for result in (new, busy):
        # CPU time is known in ticks; less than one would be a division by nothing
        result["proxy_cpu"] = max(result["proxy_cpu"], 1 / processes.TICK)
        if result["failed"]:
            plan.bench.remark("%s, %s, %d connections: %s" % (proxy.name, _word(proxy.mptcp), count, result["errors"]))
    measured.add(count, number, new, busy)


def _take(plan, step, measured):
    number, mptcp, kind, workers = step
    with Field() as lab:
        lab.congestion(CONGESTION)
        proxy = kind(lab, mptcp, workers) if workers else kind(lab, mptcp)
        proxy.start()
        if proxy.version():
            plan.bench.version(proxy.name, proxy.version())
        if workers:
            _measure_work(lab, proxy, plan, measured, number, plan.typical)
        else:
            _measure_memory(lab, proxy, plan, measured)
            for count in plan.counts:
                _measure_work(lab, proxy, plan, measured, number, count)
        proxy.stop()


def _measure(plan):
    """{(MPTCP, workers or None, name): Measured}. Who fails in a round misses the rest of that round, which is remarked upon; who has failed
    in all of them is left out.
    """
    found = {}
    for step in plan.bench.over(list(plan.steps()), plan.label, plan.weight):
        try:
            _take(plan, step, found.setdefault((step[1], step[3], step[2].name), Measured()))
        except LabError as error:
            plan.bench.remark("%s has failed: %s" % (plan.label(step), error))
    complete = {}
    for (mptcp, workers, name), measured in found.items():
        wanted = [plan.typical] if workers else plan.counts
        if set(wanted) <= set(measured.counts()) and (workers or set(plan.memory_counts) <= set(measured.user)):
            complete[mptcp, workers, name] = measured
        elif name in (Direct.name, Convertd.name):
            raise LabError("%s (%s) has failed in all rounds" % (name, _word(mptcp)))
    return complete


# --- what becomes of it ---------------------------------------------------------------------------


def _figure(value):
    """A figure with four digits, without an exponent."""
    return "%.0f" % value if abs(value) >= 1000 else "%.4g" % value


class Findings:
    """Tables, values and plots, made of what was measured."""

    def __init__(self, plan, measured):
        self.plan, self.bench = plan, plan.bench
        self._measured = measured
        self.largest = plan.memory_counts[-1]
        self.memory = {mptcp: self._memory(mptcp) for mptcp in (False, True)}
        self.figures = {mptcp: self._figures(mptcp) for mptcp in (False, True)}

    def systems(self, mptcp, workers=None):
        """{name: Measured}"""
        return {name: found for (is_mptcp, number, name), found in self._measured.items() if (is_mptcp, number) == (mptcp, workers)}

    def _memory(self, mptcp):
        """{name: {connections: (user space, kernel or None) in KB each}}"""
        direct = [self._measured[is_mptcp, None, Direct.name].kernel for is_mptcp in (False, True)]
        found = {}
        for name, measured in self.systems(mptcp).items():
            found[name] = {}
            for count in measured.user:
                ends = model.ends_kb(median(direct[0][count]), median(direct[1][count]), mptcp)
                user, kernel = model.memory_each(median(measured.user[count]), median(measured.kernel[count]), ends, count)
                found[name][count] = user, kernel if count >= KERNEL_FROM else None
        return found

    def _figures(self, mptcp):
        """{name: model.Figures}, without direct's"""
        count, systems = self.plan.typical, self.systems(mptcp)
        found = {}
        for name, measured in systems.items():
            if name != Direct.name:
                found[name] = model.Figures(
                    median(measured.rates_per_core(count)), median(measured.gbits_per_core(count)), *self.memory[mptcp][name][self.largest],
                    measured.p99_ms(count), *measured.of_direct(systems[Direct.name], count))
        return found

    def all(self):
        """Everything, the summary first."""
        self.summary()
        for mptcp in (False, True):
            self.standing(mptcp)
        self.whole_machine()
        self.growth_of_memory()
        for mptcp in (False, True):
            self.growth_of_work(mptcp)
        self.workers()
        Field.remark_others(self.bench, [result for measured in self._measured.values() for result in measured.results()])
        self._keep()

    def _keep(self):
        for (mptcp, workers, name), measured in self._measured.items():
            for count in measured.counts():
                title = "%s, %s, %s%d connections: " % (name, _word(mptcp), "%d workers, " % workers if workers else "", count)
                self.bench.samples(title + "new a second, p99 us, CPU us each, of all CPUs", [
                    [new.rate, new["latency"].get("p99"), new.cpu_us_per_connection(), new.cpu_us_per_connection("system_cpu")]
                    for new in measured.new[count]])
                self.bench.samples(title + "Gbit/s, CPU s/GB, of all CPUs", [
                    [busy.gbit, busy.cpu_per_gb(), busy.cpu_per_gb("system_cpu")] for busy in measured.busy[count]])
            for count in measured.user:
                self.bench.samples("%s, %s, %d connections: KB added in user space, in the kernel" % (name, _word(mptcp), count),
                                   list(zip(measured.user[count], measured.kernel[count])))

    # --- the summary ----------------------------------------------------------------------------

    @staticmethod
    def _beside(value, own, pattern):
        """A figure, and how many times that of convertd it is."""
        return None if value is None else pattern % value + (" (%.2f×)" % (value / own) if own else "")

    def summary(self):
        """One table: a row a system and protocol."""
        rows = []
        for mptcp, figures in self.figures.items():
            own = figures[Convertd.name]
            for name, found in figures.items():
                rows.append([
                    name, _word(mptcp),
                    self._beside(found.rate_per_core, own.rate_per_core, "%.0f"),
                    self._beside(found.gbit_per_core, own.gbit_per_core, "%.1f"),
                    self._beside(found.memory_kb, own.memory_kb, "%.1f"),
                    None if found.memory_kb is None else "%.1f + %.1f" % (found.user_kb, found.kernel_kb),
                    "%.1f" % found.p99_ms, "%.2f" % found.rate_of_direct, "%.2f" % found.gbit_of_direct])
        self.bench.table(
            "What a core carries and a connection occupies, with {:,} connections open (memory: {:,}). ↑: more is better, ↓: less is "
            "better. In parentheses: how many times convertd's".format(self.plan.typical, self.largest),
            ["", "clients speak", "new connections/s per core ↑", "Gbit/s per core ↑", "KB per idle connection ↓", "user space + kernel",
             "p99 ms ↓", "connections/s of direct ↑", "goodput of direct ↑"], rows, key="summary")
        direct = [(_word(mptcp), self.systems(mptcp)[Direct.name]) for mptcp in (False, True)]
        self.bench.remark(
            "Connections/s and goodput of direct are of one worker, with client and server beside it; without a proxy there were %s." %
            " and ".join("{:,.0f} connections/s and {:.1f} Gbit/s by {}".format(
                measured.rate(self.plan.typical), measured.gbit(self.plan.typical), word) for word, measured in direct))

    def standing(self, mptcp):
        """Beside the best of the others; values for the page."""
        figures, word = self.figures[mptcp], _word(mptcp).lower()
        rows = [[title, _figure(own), _figure(other), name, "%.2f" % times, model.verdict(times)]
                for _, title, own, name, other, times in model.standing(figures, Convertd.name)]
        self.bench.table("convertd beside the best of the others, %s: above 1 it is the better one, and within %d%% level" % (
            _word(mptcp), 100 * model.LEVEL), ["", "convertd", "best of the others", "which", "times as good", "so it is"], rows,
            key="standing_" + word)
        self.bench.value("standing_" + word, model.in_words(figures, Convertd.name))
        own = figures[Convertd.name]
        fit = {name: model.connections_in(found.memory_kb) for name, found in figures.items() if model.connections_in(found.memory_kb)}
        self.bench.value("rate_per_core_" + word, "%.0f" % own.rate_per_core)
        self.bench.value("gbit_per_core_" + word, "%.1f" % own.gbit_per_core)
        self.bench.value("user_kb_" + word, "%.1f" % own.user_kb)
        self.bench.value("in_gib_" + word, ", ".join("%s %s" % (name, "{:,}".format(round(count, -2))) for name, count in sorted(
            fit.items(), key=lambda pair: -pair[1])))
        self.bench.value("in_gib_convertd_" + word, "{:,}".format(round(fit.get(Convertd.name, 0), -2)))
        measured = self.systems(mptcp)[Convertd.name]
        for key, by_count in (("new", {count: median(measured.connection_us(count)) for count in measured.counts()}),
                              ("gb", {count: median(measured.cpu_per_gb(count)) for count in measured.counts()}),
                              ("user", {count: user for count, (user, _) in self.memory[mptcp][Convertd.name].items()})):
            self.bench.value("growth_%s_%s" % (key, word), "%.2f" % (model.growth(by_count) or 0))

    def whole_machine(self):
        """What the proxy is charged with, and what the machine has used in all: a table."""
        count, rows = self.plan.typical, []
        for mptcp in (False, True):
            systems = self.systems(mptcp)
            whole = [(median(measured.connection_us(count, "system_cpu")), median(measured.cpu_per_gb(count, "system_cpu")))
                     for measured in systems.values()]
            direct = whole[list(systems).index(Direct.name)]
            turned = model.turned_round(
                {name: median(measured.connection_us(count)) for name, measured in self._proxies(mptcp)},
                {name: connection for name, (connection, _) in zip(systems, whole)})
            self.bench.value("order_" + _word(mptcp).lower(), model.order_in_words(turned))
            for (name, measured), (connection, gigabyte) in zip(systems.items(), whole):
                own = (None, None) if name == Direct.name else (
                    "%.0f" % median(measured.connection_us(count)), "%.2f" % median(measured.cpu_per_gb(count)))
                rows.append([name, _word(mptcp), own[0], "%.0f" % connection, "%.0f" % (connection - direct[0]),
                             own[1], "%.2f" % gigabyte, "%.2f" % (gigabyte - direct[1])])
        self.bench.table(
            "CPU time that the proxy is charged with, that of the whole machine (client, server and what is charged to nobody), and how "
            "much more that is than without a proxy, with {:,} connections open".format(count),
            ["", "clients speak", "µs a new connection: proxy", "machine", "more than direct", "s/GB: proxy", "machine",
             "more than direct"], rows, key="machine")

    # --- growth -----------------------------------------------------------------------------------

    def growth_of_memory(self):
        """How memory grows with the number of connections: a table and plots."""
        rows, counts = [], self.plan.memory_counts
        for mptcp, systems in self.memory.items():
            for part, word in enumerate(("user space", "kernel")):
                rows += [[name, _word(mptcp), word] + [None if found[count][part] is None else "%.1f" % found[count][part]
                                                       for count in counts]
                         for name, found in systems.items() if name != Direct.name]
        self.bench.table("KB of an idle connection, by the number of connections", ["", "clients speak", "in"] + [
            "{:,}".format(count) for count in counts], rows, key="memory")
        for mptcp in (False, True):
            self.bench.plot("lines", "Memory of an idle connection in user space, clients speak %s" % _word(mptcp), {
                name: self._band({count: [value / count for value in values] for count, values in measured.user.items()})
                for name, measured in self._proxies(mptcp)}, key="memory_" + _word(mptcp).lower(), ylabel="KB each", ylog=True,
                xlabel="connections that are open", xlog=True, xticks=counts)
        names = [name for name, _ in self._proxies(False)]
        self.bench.plot("bars", "Memory of an idle connection, user space and kernel, with %s of them" % "{:,}".format(self.largest), {
            name: [self.figures[mptcp][name].memory_kb if name in self.figures[mptcp] else None for mptcp in (False, True)]
            for name in names}, key="memory_all", categories=["clients speak TCP", "clients speak MPTCP"], ylabel="KB each", ylog=True,
                        ylim=[1, None])

    def _proxies(self, mptcp):
        return [(name, measured) for name, measured in self.systems(mptcp).items() if name != Direct.name]

    def growth_of_work(self, mptcp):
        """How rates and CPU time change with the number of connections: a table and two plots."""
        word, systems = _word(mptcp), self.systems(mptcp)
        rows = []
        for name, measured in systems.items():
            for count in measured.counts():
                is_direct, shares = name == Direct.name, measured.of_direct(systems[Direct.name], count)
                rows.append([
                    name, count, "%.0f" % measured.rate(count), "%.2f" % shares[0], "%.1f" % measured.p99_ms(count),
                    None if is_direct else "%.0f" % median(measured.connection_us(count)),
                    "%.0f" % median(measured.connection_us(count, "system_cpu")),
                    "%.1f" % measured.gbit(count), "%.2f" % shares[1],
                    None if is_direct else "%.2f" % median(measured.cpu_per_gb(count)),
                    "%.2f" % median(measured.cpu_per_gb(count, "system_cpu"))])
        self.bench.table("By the number of connections that are open, clients speak %s; \"all CPU\" is that of the whole machine, client and "
                         "server among it" % word,
                         ["", "open", "new/s", "of direct", "p99 ms", "CPU µs each", "all CPU µs each",
                          "Gbit/s", "of direct", "CPU s/GB", "all CPU s/GB"], rows, key="growth_" + word.lower())
        options = {"xlabel": "connections that are open", "xlog": True, "xticks": self.plan.counts, "ylim": [0, None]}
        self.bench.plot("lines", "New connections while others are open, clients speak %s" % word, {
            name: self._band({count: measured.connection_us(count) for count in measured.counts()})
            for name, measured in self._proxies(mptcp)}, key="new_" + word.lower(), ylabel="the proxy's CPU µs for each", **options)
        self.bench.plot("lines", "Goodput of connections that are all active, clients speak %s" % word, {
            name: self._band({count: measured.gbits_per_core(count) for count in measured.counts()})
            for name, measured in self._proxies(mptcp)}, key="goodput_" + word.lower(), ylabel="Gbit/s for each core of the proxy", **options)

    @staticmethod
    def _band(by_count):
        """The median, with the lowest and the highest of all rounds."""
        return [(count, median(values), min(values), max(values)) for count, values in by_count.items() if all(values)]

    def workers(self):
        """How figures change with the number of workers: a table and two plots."""
        rows, new, goodput, categories = [], {}, {}, []
        for mptcp in (False, True):
            limit = self.systems(mptcp, self.plan.workers[0]).get(Direct.name)
            for workers in self.plan.workers if limit else ():
                categories.append("%s, %d" % (_word(mptcp), workers))
                for name, measured in self.systems(mptcp, workers).items():
                    if name == Direct.name:
                        continue
                    count = self.plan.typical
                    shares = measured.of_direct(limit, count)
                    own, gigabyte = measured.connection_us(count), measured.cpu_per_gb(count)
                    rows.append([name, _word(mptcp), workers, "%.0f" % measured.rate(count), "%.2f" % shares[0], "%.0f" % median(own),
                                 "%.0f" % median(measured.connection_us(count, "system_cpu")), "%.1f" % measured.gbit(count),
                                 "%.2f" % shares[1], "%.2f" % median(gigabyte), "%.2f" % median(measured.cpu_per_gb(count, "system_cpu"))])
                    new.setdefault(name, {})[categories[-1]] = median(own), min(own), max(own)
                    goodput.setdefault(name, {})[categories[-1]] = median(gigabyte), min(gigabyte), max(gigabyte)
        for mptcp in (False, True):
            by_workers = {workers: median(self.systems(mptcp, workers)[Convertd.name].connection_us(self.plan.typical))
                          for workers in self.plan.workers if Convertd.name in self.systems(mptcp, workers)}
            times = model.growth(by_workers)
            self.bench.value("workers_new_" + _word(mptcp).lower(), "%.2f" % times if times else "an unknown number of")
        self.bench.table("By the number of workers, with %d connections open" % self.plan.typical,
                         ["", "clients speak", "workers", "new/s", "of direct", "CPU µs each", "all CPU µs each", "Gbit/s", "of direct",
                          "CPU s/GB", "all CPU s/GB"], rows, key="workers")
        for key, title, found, unit in (("workers_new", "New connections", new, "µs for each"),
                                        ("workers_goodput", "Goodput", goodput, "s for each GB")):
            self.bench.plot("bars", title + ", with more and more workers", {
                name: [values.get(category) for category in categories] for name, values in found.items()}, key=key,
                categories=categories, xlabel="protocol of clients, number of workers", ylabel="the proxy's CPU " + unit)


def run(bench):
    """The experiment."""
    plan = Plan(bench)
    Findings(plan, _measure(plan)).all()
