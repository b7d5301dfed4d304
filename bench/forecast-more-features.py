"""Would more features of other pools, or of the pool's own past, make the forecast of prices sharper? On the validation range alone (docs/results.md).

    EBB_DATA_DIR=TRACES PYTHON bench/forecast-more-features.py DATASET [--told]

with the Python that `npm run train:preemption` makes, the data set that it draws, and the traces that this was drawn from. Boosting on the
label "lost within the hour" (models/training/preemption/rivals.py) is fitted to the present features, and with groups of the ones below
beside them. Differences on the validation range, bids as in the paper, have intervals from bootstraps over days, paired. A feature of
an instant is made of prices published until then, of a week but for excursions: what a forecast has when it is asked.

With --told the groups are of the hour that follows instead, which no forecast has: what one would need to know to be right more often.
"""

import argparse
import csv
import datetime
import gzip
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "models" / "training" / "preemption"))

import numpy as np
import rivals
import trees_model
from dataset import Dataset
from sklearn.metrics import average_precision_score

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
LABEL = 2  # one hour: its place among the horizons
PAST = 7 * DAY  # how far the features look back
GRID = 15 * MINUTE  # past moments that the present one is compared with
SEED = 1
RESAMPLED, RESAMPLED_RANKS = 2000, 200


class Series:
    """Prices of a pool in the order of time, asked at many instants at once."""

    def __init__(self, at, usd):
        self.at, self.usd = np.asarray(at, np.float64), np.asarray(usd, np.float64)
        self.levels = max(1, int(np.log2(len(self.at))) + 1)
        self.high, self.low = self._spans(np.maximum), self._spans(np.minimum)

    def _spans(self, extreme):
        """[k, i]: the extreme of the 2^k prices from i on."""
        rows = [self.usd]
        for k in range(1, self.levels):
            row, half = rows[-1].copy(), 1 << (k - 1)
            row[:-half] = extreme(rows[-1][:-half], rows[-1][half:])
            rows.append(row)
        return np.stack(rows)

    def index(self, t):
        """Of the price in force; -1 before any."""
        return np.searchsorted(self.at, t, "right") - 1

    def price(self, t):
        i = self.index(t)
        return np.where(i < 0, np.nan, self.usd[np.maximum(i, 0)])

    def most(self, begin, end):
        """The highest price in force in [begin, end]."""
        first, last = np.maximum(self.index(begin), 0), np.maximum(self.index(end), 0)
        k = np.log2(last - first + 1).astype(int)
        return np.maximum(self.high[k, first], self.high[k, last + 1 - (1 << k)])

    def last(self, i, usd, above):
        """The last index until i whose price is above `usd` (or is not); -1 where there is none."""
        end = i + 1
        for k in reversed(range(self.levels)):
            begin = end - (1 << k)
            at = np.maximum(begin, 0)
            none = self.high[k, at] <= usd if above else self.low[k, at] > usd
            end = np.where((begin >= 0) & none, begin, end)
        return end - 1

    def since_above(self, t, usd):
        """ms for which it was not above; PAST where it never was."""
        i = self.index(t)
        j = self.last(i, usd, True)
        ended = self.at[np.minimum(j + 1, len(self.at) - 1)]
        return np.where(j < 0, PAST, np.where(j == i, 0, np.minimum(PAST, t - ended)))


class Market:
    """All pools of a source; `t`, `pool` and `bid` are of the rows of the data set that are its."""

    def __init__(self, data, k, folder):
        self.rows = np.flatnonzero(np.asarray(data.source) == k)
        self.t, self.pool = np.asarray(data.atMs)[self.rows], np.asarray(data.pool)[self.rows]
        names, x = data.manifest["features"], np.asarray(data.features[self.rows])
        price, self.delta = x[:, names.index("priceUsd")].astype(float), x[:, names.index("bidDeltaUsd")].astype(float)
        on_demand = np.exp(x[:, names.index("onDemandUsdLog")].astype(float))
        self.name = data.manifest["sources"][k]["name"]
        histories = read(folder / self.name / "spot_price_changes.csv.gz")
        self.ids = np.unique(self.pool)
        self.label = {i: data.manifest["pools"][i] for i in self.ids}
        self.on_demand = {i: float(on_demand[self.pool == i][0]) for i in self.ids}
        self.series = {i: Series(*histories[self.label[i]]) for i in self.ids}
        self.own = {i: np.flatnonzero(self.pool == i) for i in self.ids}
        self.price = np.empty(len(self.t))
        for i, mine in self.own.items():
            self.price[mine] = self.series[i].price(self.t[mine])
        if np.mean(np.abs(self.price / price - 1) < 1e-5) < 0.999:
            raise SystemExit(f"{self.name}: the traces are not those that the data set was drawn from")
        self.bid = self.price + self.delta

    def type_of(self, i):
        return self.label[i].split("/")[0]

    def zone_of(self, i):
        return self.label[i].split("/")[1]

    def family_of(self, i):
        return self.type_of(i).split(".")[0]


def read(file):
    """By TYPE/ZONE: instants, ms, and prices."""
    found = {}
    with gzip.open(file, "rt") as lines:
        for time, zone, kind, usd in list(csv.reader(lines))[1:]:
            at, prices = found.setdefault(f"{kind}/{zone}", ([], []))
            at.append(datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp() * 1000)
            prices.append(float(usd))
    return found


def log_hours(ms):
    return np.log1p(np.maximum(0, ms) / HOUR)


def far(usd, on_demand):
    """As bidAboveMax1h (lib/market/features/feature-rows.ts)."""
    return np.arcsinh(usd / on_demand / 0.01)


# --- Groups. Each gives columns by name; a name that ends in + never falls when the bid rises, and trees may use it downwards only.


def seen_of(market, i, q, mine):
    """What pool q says to the bids of pool i, each bid as the same share of on-demand there."""
    t, of, od = market.t[mine], market.series[q], market.on_demand[q]
    bid = market.bid[mine] / market.on_demand[i] * od
    now = of.price(t)
    columns = {f"above{name}+": far(bid - of.most(t - ms, t), od) for name, ms in [("5m", 5 * MINUTE), ("1h", HOUR), ("24h", DAY)]}
    columns["since+"] = log_hours(of.since_above(t, bid))
    for name, ms in [("5m", 5 * MINUTE), ("15m", 15 * MINUTE), ("1h", HOUR)]:
        columns[f"rise{name}"] = np.log(now / of.price(t - ms))
    columns["spread"] = np.log(now / od) - np.log(market.price[mine] / market.on_demand[i])
    columns["sinceChange"] = log_hours(t - of.at[np.maximum(of.index(t), 0)])
    return columns


def summed_up(market, neighbours_of, seen_of=seen_of):
    """Least, mean and most of what the neighbours say; nothing (NaN) where there are none."""
    columns = {}
    for i, mine in market.own.items():
        said = [seen_of(market, i, q, mine) for q in neighbours_of(i)]
        for name in said[0] if said else []:
            every = np.stack([of[name] for of in said])
            known = ~np.isnan(every).all(axis=0)
            for how, of_all in [("least", np.nanmin), ("mean", np.nanmean), ("most", np.nanmax)]:
                column = columns.setdefault(f"{how}-{name}", np.full(len(market.t), np.nan))
                column[mine[known]] = of_all(every[:, known], axis=0)
    return columns


def elsewhere(market, i):
    return [q for q in market.ids if q != i and market.type_of(q) == market.type_of(i)]


def zones(market):
    """The same type in other zones."""
    return summed_up(market, lambda i: elsewhere(market, i))


def siblings(market, i):
    same = [q for q in market.ids if market.zone_of(q) == market.zone_of(i) and market.family_of(q) == market.family_of(i)]
    return sorted(same, key=lambda q: market.on_demand[q])


def family(market):
    """Other sizes in the zone, which share hardware: all, the next smaller and the next larger one."""
    columns = summed_up(market, lambda i: [q for q in siblings(market, i) if q != i])
    for i, mine in market.own.items():
        sizes = siblings(market, i)
        for step, name in [(-1, "smaller"), (1, "larger")]:
            at = sizes.index(i) + step
            for of, value in seen_of(market, i, sizes[at], mine).items() if 0 <= at < len(sizes) else []:
                columns.setdefault(f"{name}-{of}", np.full(len(market.t), np.nan))[mine] = value
    return columns


def breadth(market):
    """Shares of the other pools of the zone and of the region that are above on-demand, rise, or change."""
    order = np.unique(market.t)
    at = np.searchsorted(order, market.t)
    sums = {}
    for i in market.ids:
        now, own = market.series[i].price(order), market.series[i]
        said = {"known": ~np.isnan(now), "aboveOnDemand": now > market.on_demand[i]}
        for name, ms in [("5m", 5 * MINUTE), ("15m", 15 * MINUTE), ("1h", HOUR)]:
            rise = np.log(now / own.price(order - ms))
            said |= {f"rises{name}": rise > 0, f"falls{name}": rise < 0, f"jumps{name}": rise > 0.2, f"rise{name}": np.nan_to_num(rise)}
        for name, value in said.items():
            value = value.astype(np.float32)
            for scope in [market.zone_of(i), "region"]:
                total = sums.setdefault((scope, name), np.zeros(len(order), np.float32))
                total += value
        for name, value in said.items():
            sums[("own", i, name)] = value[at[market.own[i]]].astype(np.float32)
    columns = {}
    for i, mine in market.own.items():
        for scope, called in [(market.zone_of(i), "zone"), ("region", "region")]:
            others = np.maximum(1, sums[(scope, "known")][at[mine]] - 1)
            for name in {of for (s, of) in (key for key in sums if len(key) == 2) if of != "known"}:
                column = columns.setdefault(f"{called}-{name}", np.full(len(market.t), np.nan))
                column[mine] = (sums[(scope, name)][at[mine]] - sums[("own", i, name)]) / others
    return dict(sorted(columns.items()))


def excursions(market):
    """The last three times above the bid: since when over, how long, how far apart."""
    columns = {}
    for i, mine in market.own.items():
        of, t, bid = market.series[i], market.t[mine], market.bid[mine]
        until, before = of.index(t), t
        for n in range(3):
            last = of.last(until, bid, True)
            first = of.last(last, bid, False) + 1
            ended, began = of.at[np.minimum(last + 1, len(of.at) - 1)], of.at[np.minimum(first, len(of.at) - 1)]
            none = last < 0
            said = {f"since{n}": np.where(none, PAST, t - ended), f"length{n}": np.where(none, 0, ended - began), f"gap{n}": np.where(none, PAST, before - ended)}
            for name, value in said.items():
                columns.setdefault(name, np.full(len(market.t), np.nan))[mine] = log_hours(value)
            until, before = first - 1, np.where(none, before, began)
    return columns


WINDOWS = [("1h", HOUR), ("6h", 6 * HOUR), ("24h", DAY), ("7d", 7 * DAY)]


def instants(market):
    """Pool, its series, and the rows of each of its instants: bids of one instant lie beside each other."""
    for i, mine in market.own.items():
        for rows in np.split(mine, np.flatnonzero(np.diff(market.t[mine])) + 1):
            yield i, market.series[i], rows, market.t[rows[0]]


def crossings(market):
    """How often the price rose above the bid, in an hour to a week."""
    columns = {name: np.zeros(len(market.t)) for name, _ in WINDOWS}
    for _, of, rows, t in instants(market):
        end = of.index(t) + 1
        begin = max(0, np.searchsorted(of.at, t - WINDOWS[-1][1], "right") - 1)
        above = of.usd[begin:end, None] > market.bid[rows]
        rose = np.cumsum((above[1:] & ~above[:-1])[::-1], axis=0)
        for name, ms in WINDOWS:
            count = end - max(begin + 1, np.searchsorted(of.at, t - ms, "right"))
            columns[name][rows] = np.log1p(rose[count - 1]) if count > 0 else 0
    return columns


def levels(market):
    """The share of an hour to a week in which the price was not above the bid, and the price's own place and moves in a day."""
    columns = {f"below{name}+": np.ones(len(market.t)) for name, _ in WINDOWS}
    more = ["place24h", "place7d", "ups24h", "step24h", "steps1h"]
    columns |= {name: np.zeros(len(market.t)) for name in more}
    for _, of, rows, t in instants(market):
        end = of.index(t) + 1
        begin = max(0, np.searchsorted(of.at, t - WINDOWS[-1][1], "right") - 1)
        usd, at = of.usd[begin:end], of.at[begin:end]
        until = np.append(at[1:], t)
        step = np.diff(np.log(usd))
        for name, ms in WINDOWS:
            time = np.maximum(0, until - np.maximum(at, t - ms))
            total = max(1, time.sum())
            columns[f"below{name}+"][rows] = time @ (usd[:, None] <= market.bid[rows]) / total
            if name in ("24h", "7d"):
                columns[f"place{name}"][rows] = time @ (usd < usd[-1]) / total
        day, hour = step[at[1:] > t - DAY], step[at[1:] > t - HOUR]
        columns["ups24h"][rows] = (np.sum(day > 0) + 0.5) / (len(day) + 1)
        columns["step24h"][rows] = np.log1p(np.abs(day).mean() * 100) if len(day) else 0
        columns["steps1h"][rows] = hour.sum() / (np.abs(hour).sum() + 1e-3)
    return columns


def analogues(market):
    """Of past moments of the pool that were like this one, the share after which the bid would have lived for an hour."""
    kinds = ["level", "levelClose", "state", "stateRise", "hourLevel", "hourRise", "recentRise", "recent"]
    columns = {f"{name}+": np.full(len(market.t), 0.5) for name in kinds}
    grids = {i: grid(of) for i, of in market.series.items()}
    for i, of, rows, t in instants(market):
        at, log_price, peak, rise, activity, calm = grids[i]
        end, begin = np.searchsorted(at, t - HOUR, "right"), np.searchsorted(at, t - PAST)
        if end <= begin:
            continue
        part = slice(begin, end)
        lived, calmer = peak[part, None] <= market.bid[rows], rise[part, None] <= market.delta[rows]
        now_price = np.log(of.price(t))
        near = np.abs(log_price[part] - now_price)
        now_activity, now_calm = state_at(of, t)
        like = np.exp(-near / 0.2 - np.abs(activity[part] - now_activity) / 0.5 - np.abs(calm[part] - now_calm) / 0.7)
        apart = np.abs((t - at[part] + DAY / 2) % DAY - DAY / 2)
        hour = np.exp(-apart / HOUR)
        recent = np.exp(-(t - at[part]) / (6 * HOUR))
        weights = {"level": np.exp(-near / 0.2), "levelClose": np.exp(-near / 0.02), "state": like, "hourLevel": hour * np.exp(-near / 0.3), "recent": recent}
        for name, w in weights.items():
            columns[f"{name}+"][rows] = (w @ lived + 0.5) / (w.sum() + 1)
        for name, w in {"stateRise": like, "hourRise": hour, "recentRise": recent}.items():
            columns[f"{name}+"][rows] = (w @ calmer + 0.5) / (w.sum() + 1)
    return columns


def state_at(of, t):
    i = of.index(t)
    return np.log1p(i - of.index(t - HOUR)), log_hours(t - of.at[np.maximum(i, 0)])


def grid(of):
    at = np.arange(of.at[0], of.at[-1], GRID)
    price, peak = of.price(at), of.most(at, at + HOUR)
    return at, np.log(price), peak, peak - price, *state_at(of, at)


# --- Groups of what is to come.


def of_each_pool(market, said):
    columns = {}
    for i, mine in market.own.items():
        for name, value in said(market.series[i], market.t[mine]).items():
            columns.setdefault(name, np.full(len(market.t), np.nan))[mine] = value
    return columns


def next_at(of, t):
    """The change that comes next, and whether one does."""
    i = of.index(t) + 1
    return np.minimum(i, len(of.at) - 1), i < len(of.at)


def next_when(market):
    """How long until the price changes."""

    def said(of, t):
        i, comes = next_at(of, t)
        return {"untilNext": np.where(comes, log_hours(of.at[i] - t), np.nan)}

    return of_each_pool(market, said)


def next_way(market):
    """Whether it rises or falls then, and not when nor how far."""

    def said(of, t):
        i, comes = next_at(of, t)
        return {"nextRises": np.where(comes, np.sign(of.usd[i] - of.price(t)), np.nan)}

    return of_each_pool(market, said)


def how_often(market):
    """How often the price changes within the hour."""
    return of_each_pool(market, lambda of, t: {"changes": np.log1p(of.index(t + HOUR) - of.index(t))})


def others_next(market):
    """How such a bid fares within the hour in other zones and in other sizes of the zone."""

    def coming(market, i, q, mine):
        of, od, t = market.series[q], market.on_demand[q], market.t[mine]
        bid = market.bid[mine] / market.on_demand[i] * od
        peak = of.most(t, t + HOUR)
        return {"above+": far(bid - peak, od), "rise": np.log(peak / of.price(t)), "change": np.log(of.price(t + HOUR) / of.price(t))}

    found = {}
    for name, neighbours in [("zones", lambda i: elsewhere(market, i)), ("sizes", lambda i: [q for q in siblings(market, i) if q != i])]:
        found |= {f"{name}-{column}": value for column, value in summed_up(market, neighbours, coming).items()}
    return found


TOLD = {
    "when it changes": next_when,
    "which way": next_way,
    "how often": how_often,
    "other pools' hour": others_next,
}
KNOWN = {
    "other zones": zones,
    "other sizes": family,
    "zone and region": breadth,
    "own excursions": excursions,
    "own crossings": crossings,
    "own levels": levels,
    "own analogues": analogues,
}
OWN = [group for group in KNOWN if group.startswith("own")]
TOGETHER = {"other pools": [group for group in KNOWN if group not in OWN], "own past": OWN, "all": list(KNOWN)}
TOLD_TOGETHER = {"when and which way": ["when it changes", "which way"]}


def drawn(data, folder, makers):
    """By group: names, and columns for all rows of the data set."""
    of = {}
    for k in range(len(data.manifest["sources"])):
        market = Market(data, k, folder)
        for group, make in makers.items():
            for name, column in make(market).items():
                whole = of.setdefault(group, {}).setdefault(name, np.full(len(data.pool), np.nan, np.float32))
                whole[market.rows] = column
        print(f"{market.name}: features drawn", file=sys.stderr, flush=True)
    return {group: (list(columns), np.stack(list(columns.values()), axis=1)) for group, columns in of.items()}


def interval(values):
    return f"[{np.quantile(values, 0.025):.4f}, {np.quantile(values, 0.975):.4f}]"


def scores(p, y):
    right = np.mean((p >= 0.5) == y)
    return f"accuracy {right:.4f}, expected {np.mean(np.maximum(p, 1 - p)):.4f}, Brier {np.mean((p - y) ** 2):.4f}, AUC-PR {average_precision_score(y, p):.4f}"


def gains(p, base, y, day):
    """How far the scores lie above those of the present features, in the mean and over days drawn anew."""
    days, of = np.unique(day, return_inverse=True)
    drawn_days = np.random.default_rng(SEED).integers(len(days), size=(RESAMPLED, len(days)))
    weights = np.stack([np.bincount(row, minlength=len(days)) for row in drawn_days])
    rows = weights @ np.bincount(of)

    def gain(name, by_row):
        return f"{name} {by_row.mean():+.4f} {interval(weights @ np.bincount(of, by_row) / rows)}"

    right = ((p >= 0.5) == y).astype(float) - ((base >= 0.5) == y)
    ranks = [average_precision_score(y, p, sample_weight=w) - average_precision_score(y, base, sample_weight=w) for w in weights[:RESAMPLED_RANKS, of]]
    return ", ".join([gain("accuracy", right), gain("Brier", (p - y) ** 2 - (base - y) ** 2), f"AUC-PR {interval(ranks)}"])


def labelled(data, split):
    rows = data.rows(split)
    lost, known = data.labels(rows)
    return rows[known[:, LABEL]], lost[known[:, LABEL], LABEL]


def answers(data, groups, held, together):
    """What the forecast with each set of groups says to the rows held."""
    rows, y = labelled(data, "train")
    if len(rows) > rivals.ROWS:
        some = np.sort(np.random.default_rng(SEED).choice(len(rows), rivals.ROWS, replace=False))
        rows, y = rows[some], y[some]
    for name, chosen in {"present": [], **{group: [group] for group in groups}, **together}.items():
        names = [column for group in chosen for column in groups[group][0]]
        falls = np.concatenate([trees_model.monotone(data.kinds), [-1 if column.endswith("+") else 0 for column in names]])
        x, asked = (np.concatenate([np.asarray(data.features[of]), *(groups[group][1][of] for group in chosen)], axis=1) for of in (rows, held))
        yield name, rivals.boosting(SEED, falls).fit(x, y).predict_proba(asked)[:, 1]
        print(f"{name}: fitted, {len(names)} features more", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--told", action="store_true", help="groups of the hour that follows")
    opts = parser.parse_args()
    data = Dataset(opts.dataset)
    makers, together = (TOLD, TOLD_TOGETHER) if opts.told else (KNOWN, TOGETHER)
    groups = drawn(data, pathlib.Path(os.environ["EBB_DATA_DIR"]), makers)
    held, y = labelled(data, "validation")
    said = dict(answers(data, groups, held, together))
    source, day = np.asarray(data.source)[held], np.asarray(data.atMs)[held] // DAY
    by_delta = np.asarray(data.bidKind)[held] == data.manifest["bidKinds"].index("delta")
    for k, market in enumerate(data.manifest["sources"]):
        mine = (source == k) & by_delta
        base = said["present"][mine]
        print(f"{market['name']}: {mine.sum()} bids")
        for name, p in said.items():
            against = "" if name == "present" else f"; {gains(p[mine], base, y[mine], day[mine])}"
            print(f"  {name:18} {scores(p[mine], y[mine])}{against}", flush=True)


main()
