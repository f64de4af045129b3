import { count, share, shortCount } from "../ui/numbers.ts";
import { datedDay, lastDayOf, longDay, monthName } from "./months.ts";
import type { Day, Projection } from "./projection.ts";
import styles from "./usage.module.css";

type OutlookTextProps = {
  month: string;
  days: readonly Day[];
  limit: number | null;
  isCurrent: boolean;
  projection: Projection | undefined;
};

/** Says in words whether the plan is enough for the month, or how much a past month used. */
export function OutlookText({ month, days, limit, isCurrent, projection }: OutlookTextProps) {
  if (projection !== undefined) return <Outlook month={month} limit={limit} {...{ projection }} />;
  const used = days.reduce((sum, { requests }) => sum + requests, 0);
  return (
    <p className={styles.outlook}>
      <strong>
        {count(used)} requests in {monthName(month)}
      </strong>
      {limit !== null && ` · ${share(used / limit)} of the plan's limit today`}
      {isCurrent && ". A projection follows after the first whole day with requests."}
    </p>
  );
}

const tones: Record<Projection["outlook"], "good" | "warning" | "danger"> = {
  unlimited: "good",
  enough: "good",
  tight: "warning",
  exceeds: "danger",
  reached: "danger",
};

type OutlookProps = { month: string; limit: number | null; projection: Projection };

function Outlook({ month, limit, projection }: OutlookProps) {
  const { outlook, pace, measuredDays } = projection;
  const measured = measuredDays === 1 ? "yesterday" : `the last ${measuredDays} days`;
  return (
    <div className={styles.outlook} data-tone={tones[outlook]}>
      <p className={styles.headline}>{headlineOf(projection, lastDayOf(month))}</p>
      <p>
        {outlook === "reached"
          ? "Further requests are rejected until the month ends. "
          : `Expected by ${longDay(lastDayOf(month))}: about ${shortCount(projection.total)}${
              limit === null
                ? " requests. "
                : ` of ${shortCount(limit)} requests (${share(projection.total / limit)}). `
            }`}
        The pace of {measured} is {shortCount(pace)} requests a day.
      </p>
    </div>
  );
}

function headlineOf({ outlook, reachedOn }: Projection, end: string): string {
  switch (outlook) {
    case "unlimited":
      return "The plan has no monthly limit.";
    case "enough":
      return "The plan is enough for this month.";
    case "tight":
      return "The plan is just enough for this month.";
    case "exceeds":
      return `The limit is expected to be reached around ${longDay(reachedOn ?? end)}.`;
    case "reached":
      return `The limit is reached. Requests work again after ${datedDay(end)}.`;
  }
}
