"""Questions that have a name."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NAMED", "NamedQuery"]


@dataclass(frozen=True)
class NamedQuery:
    """A question and its SQL."""

    question: str
    sql: str


NAMED = {
    "top": NamedQuery(
        "Which operators take most time of their own?",
        "select name, calls, self_ns, round(100.0 * self_ns / (select sum(self_ns) from events where device = 'CPU'), 1) as percent, "
        "median_ns, max_ns from operators order by self_ns desc limit 20",
    ),
    "slow-steps": NamedQuery(
        "Which steps take longest, by the median?",
        "select process, number, duration_ns, round(duration_ns / median(duration_ns) over (partition by process), 2) as times_median "
        "from steps order by duration_ns desc limit 20",
    ),
    "step-operators": NamedQuery(
        "What does each step spend its time on?",
        "select process, step, name, count(*) as calls, sum(self_ns) as self_ns from events where kind = 'op' "
        "group by process, step, name qualify row_number() over (partition by process, step order by sum(self_ns) desc) <= 3 order by process, step, self_ns desc",
    ),
    "outliers": NamedQuery(
        "Which single calls took far longer than others of their name?",
        "select e.process, e.row, e.name, e.step, e.duration_ns, round(e.duration_ns / o.median_ns, 1) as times_median from events e "
        "join operators o on e.name = o.name and e.process = o.process where e.kind = 'op' and o.calls >= 5 and o.median_ns > 0 "
        "order by e.duration_ns - o.median_ns desc limit 20",
    ),
    "shapes": NamedQuery(
        "With which shapes are the costliest operators called? (needs shapes)",
        "select name, shapes, count(*) as calls, sum(self_ns) as self_ns from events where kind = 'op' and shapes is not null "
        "group by name, shapes order by self_ns desc limit 20",
    ),
    "places": NamedQuery(
        "Which lines of the program take most time in operators? (needs stacks)",
        "select place, count(*) as calls, sum(self_ns) as self_ns from events where kind = 'op' and place is not null "
        "group by place order by self_ns desc limit 20",
    ),
    "modules": NamedQuery(
        "Which modules take most time of their own? (needs modules)",
        "select module, class, calls, self_forward_ns, self_backward_ns from modules order by self_forward_ns + self_backward_ns desc limit 20",
    ),
    "memory": NamedQuery(
        "Which operators keep most memory? (needs memory)",
        "select e.name, e.place, count(*) as made, sum(m.size_bytes) as kept_bytes from memory m "
        "join events e on m.row = e.row and m.process = e.process group by e.name, e.place order by kept_bytes desc limit 20",
    ),
    "gaps": NamedQuery(
        "Between which operators does the program's own Python take longest?",
        "select e.process, e.thread, e.name as before, lead(e.name) over w as after, lead(e.start_ns) over w - e.end_ns as gap_ns "
        "from events e left join events p on e.parent = p.row and e.process = p.process "
        "where e.kind = 'op' and (p.kind is null or p.kind <> 'op') "
        "window w as (partition by e.process, e.thread order by e.start_ns) order by gap_ns desc nulls last limit 20",
    ),
    "kernels": NamedQuery(
        "Which kernels take most time on a device, and how long do they wait after their launch?",
        "select name, count(*) as calls, sum(duration_ns) as total_ns, median(duration_ns) as median_ns, median(delay_ns) as median_delay_ns "
        "from kernels group by name order by total_ns desc limit 20",
    ),
    "threads": NamedQuery(
        "What did each thread do?",
        "select process, thread, track, count(*) as events, sum(self_ns) as self_ns, min(start_ns) as first_ns, max(end_ns) as last_ns "
        "from events where kind = 'op' group by all order by self_ns desc",
    ),
}
