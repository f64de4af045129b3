import type { ScheduledChange } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { instantText, type Reader, timeText } from "../ui/dates.ts";
import { actionText, utcBeside } from "./schedule-text.ts";
import styles from "./schedules.module.css";

export function ActionBadge({ action }: Pick<ScheduledChange, "action">) {
  return <Badge tone={action === "enable" ? "on" : "neutral"}>{actionText(action)}</Badge>;
}

type LocalAndUtcProps = { at: string; reader: Reader; isTimeOnly?: boolean };

/** A time on the reader's clock, with UTC beside it. `isTimeOnly`: the day is above it already. */
export function LocalAndUtc({ at, reader, isTimeOnly = false }: LocalAndUtcProps) {
  const instant = new Date(at);
  const local = isTimeOnly ? timeText(instant, reader) : instantText(instant, reader);
  const utc = utcBeside(instant, reader);
  const isUtc = utc === `${timeText(instant, reader)} UTC`;
  return (
    <time dateTime={at} className={styles.time}>
      {local} <span className={styles.note}>{isUtc ? "UTC" : utc}</span>
    </time>
  );
}
