import { Link } from "@tanstack/react-router";
import { Fragment, type ReactNode } from "react";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { clockText, instantText, type Reader, relativeTime } from "../ui/dates.ts";
import { outcomeTones } from "./past-schedules.tsx";
import { ActionBadge, LocalAndUtc } from "./schedule-parts.tsx";
import { latenessText } from "./schedule-text.ts";
import styles from "./timeline.module.css";
import { groupByDay, type TimelineEntry } from "./timeline.ts";

export type TimelineNames = {
  flagKey: (id: string) => string | undefined;
  environment: (id: string) => string | undefined;
  person: (id: string) => string;
};

/** Clears a schedule, or says why the person cannot. */
type Clearing = { clear: () => void; whyNot: string | undefined };

type Props = {
  label: string;
  entries: readonly TimelineEntry[];
  reader: Reader;
  names: TimelineNames;
  /** Begins the line with the present time. */
  isComing?: boolean;
  /** Returns how to clear the schedule of an entry, if its flag exists. */
  onClear?: (entry: TimelineEntry) => Clearing | undefined;
};

/** Changes on a line, grouped by day. */
export function TimelineList({ label, entries, reader, names, isComing = false, onClear }: Props) {
  return (
    <section aria-label={label}>
      {isComing && (
        <p className={styles.now}>
          <time dateTime={reader.now.toISOString()}>Now, {clockText(reader.now, reader)}</time>
        </p>
      )}
      {groupByDay(entries, reader).map(({ label: day, entries: ofDay }) => (
        <Fragment key={day}>
          <h3 className={styles.day}>{day}</h3>
          <ol className={styles.line} aria-label={day}>
            {ofDay.map((entry) => (
              <Entry
                key={`${entry.schedule.id} ${entry.change.action}`}
                entry={entry}
                reader={reader}
                names={names}
                onClear={onClear?.(entry)}
              />
            ))}
          </ol>
        </Fragment>
      ))}
    </section>
  );
}

type EntryProps = {
  entry: TimelineEntry;
  reader: Reader;
  names: TimelineNames;
  onClear: Clearing | undefined;
};

function Entry({ entry, reader, names, onClear }: EntryProps) {
  const { schedule, change, at } = entry;
  const key = names.flagKey(schedule.flag_id);
  const environment = names.environment(schedule.environment_id);
  return (
    <li className={styles.entry} data-action={change.action} data-state={change.state}>
      <span className={styles.time}>
        <LocalAndUtc at={at.toISOString()} reader={reader} isTimeOnly />
      </span>
      <div className={styles.what}>
        <p className={styles.subject}>
          <ActionBadge action={change.action} />
          <FlagLink flagKey={key} environment={environment} />
          {environment !== undefined && <Badge>{environment}</Badge>}
          {change.state !== "pending" && <Outcome entry={entry} />}
        </p>
        <p className={styles.note}>
          <Details entry={entry} reader={reader} person={names.person} />
        </p>
      </div>
      {onClear !== undefined && (
        <Button
          size="small"
          onPress={onClear.clear}
          whyNot={onClear.whyNot}
          aria-label={`Clear the schedule of ${key ?? "this flag"} in ${environment ?? "this environment"}`}
        >
          Clear
        </Button>
      )}
    </li>
  );
}

type FlagLinkProps = { flagKey: string | undefined; environment: string | undefined };

function FlagLink({ flagKey, environment }: FlagLinkProps) {
  if (flagKey === undefined) return <span>a deleted flag</span>;
  return (
    <Link
      to="/flags/$flagKey/schedule"
      params={{ flagKey }}
      search={{ env: environment }}
      className={styles.key ?? ""}
    >
      {flagKey}
    </Link>
  );
}

function Outcome({ entry: { change } }: { entry: TimelineEntry }) {
  const { state, lateness_ms: lateness } = change;
  const texts = { applied: "Applied", cancelled: "Cancelled", failed: "Failed", pending: "" };
  return (
    <>
      <Badge tone={outcomeTones[state]}>{texts[state]}</Badge>
      {lateness !== null && <span className={styles.note}>{latenessText(lateness)}</span>}
    </>
  );
}

type DetailsProps = { entry: TimelineEntry; reader: Reader; person: (id: string) => string };

/** Shows the author of the schedule, the time until the change, and its other change. */
function Details({ entry: { schedule, change, at }, reader, person }: DetailsProps): ReactNode {
  const parts = [`set by ${person(schedule.created_by)}`];
  const other = schedule.changes.find(({ action }) => action !== change.action);
  if (change.state === "pending") {
    parts.unshift(at <= reader.now ? "due now" : relativeTime(at, reader.now));
    if (other !== undefined && other.at > change.at)
      parts.push(
        `${change.action === "enable" ? "on" : "off"} until ${instantText(new Date(other.at), reader)}`,
      );
  }
  if (change.state === "cancelled") {
    if (schedule.cancelled_by !== null) parts.push(`cancelled by ${person(schedule.cancelled_by)}`);
    parts.push(`was due ${instantText(new Date(change.at), reader)}`);
  }
  return parts.join(" · ");
}
