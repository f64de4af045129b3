import { useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import type { Usage, UsageDays } from "../api/schema.d.ts";
import { ButtonLink } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { Disclosure } from "../ui/disclosure.tsx";
import { Select } from "../ui/fields.tsx";
import { count } from "../ui/numbers.ts";
import { Card, EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { DayChart } from "./day-chart.tsx";
import {
  datedDay,
  daysOf,
  firstDayOf,
  fullDay,
  monthName,
  monthOf,
  monthsSince,
} from "./months.ts";
import { OutlookText } from "./outlook-text.tsx";
import { type Day, expectedDays, projectMonth } from "./projection.ts";
import styles from "./usage.module.css";
import { useUsageDays } from "./usage-queries.ts";
import type { UsageSearch } from "./usage-search.ts";

/** The requests of a month by day, with a projection for the current month. */
export function RequestsByDay({ usage }: { usage: Usage }) {
  const { month: chosen } = useSearch({ from: "/usage" });
  const filter = useChangeSearch<UsageSearch>();
  const current = monthOf(usage.period.start);
  const month = chosen !== undefined && chosen < current ? chosen : current;
  const days = useUsageDays(month, month === current);
  const months = monthsSince(days.data?.known_since ?? null, current);
  const choose = (next: string) => filter({ month: next === current ? undefined : next });
  return (
    <Card
      title="Requests by day"
      actions={
        <Select
          label="Month"
          isLabelHidden
          value={month}
          onChange={choose}
          options={(months.includes(month) ? months : [...months, month]).map((each) => ({
            value: each,
            label: monthName(each),
          }))}
        />
      }
    >
      <QueryView query={days} label="Loading the requests">
        {(read) =>
          read.known_since === null ? (
            <NoRequests />
          ) : (
            <Month
              month={month}
              read={read}
              limit={usage.requests.limit}
              isCurrent={month === current}
            />
          )
        }
      </QueryView>
    </Card>
  );
}

/** The figures are read again every few seconds, so the first request replaces this by the chart. */
function NoRequests() {
  return (
    <EmptyState
      icon={ChartColumn}
      title="No requests yet"
      action={<ButtonLink to="/connect">Connect an application</ButtonLink>}
    >
      No application has asked for flags yet. Send a request, and it is counted here a few seconds
      later.
    </EmptyState>
  );
}

type MonthProps = { month: string; read: UsageDays; limit: number | null; isCurrent: boolean };

function Month({ month, read, limit, isCurrent }: MonthProps) {
  const projection = isCurrent ? projectMonth(read, limit) : undefined;
  const days = read.days.filter(({ date }) => monthOf(date) === month);
  const since = read.known_since;
  return (
    <div className={styles.month}>
      <OutlookText month={month} days={days} limit={limit} {...{ isCurrent, projection }} />
      <DayChart
        rows={expectedDays(month, days, projection?.pace ?? 0)}
        evenShare={limit === null ? undefined : limit / daysOf(month).length}
        label={`Requests by day in ${monthName(month)}. The table below has the numbers.`}
      />
      {since !== null && since > firstDayOf(month) && (
        <p className={styles.note}>Requests are counted since {datedDay(since)}.</p>
      )}
      <DayTable month={month} days={days} />
    </div>
  );
}

function DayTable({ month, days }: { month: string; days: readonly Day[] }) {
  return (
    <Disclosure label="Show the numbers as a table">
      {() => (
        <Table
          label={`Requests by day in ${monthName(month)}`}
          rows={days.toReversed().map((day) => ({ ...day, id: day.date }))}
          columns={[
            { id: "date", header: "Day (UTC)", cell: ({ date }) => fullDay(date) },
            {
              id: "requests",
              header: "Requests",
              align: "end",
              cell: ({ requests }) => count(requests),
            },
          ]}
        />
      )}
    </Disclosure>
  );
}
