import { getLocalTimeZone } from "@internationalized/date";
import type { Schedule } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { Badge, type Tone } from "../ui/badge.tsx";
import { Card } from "../ui/panels.tsx";
import { Time, useNow } from "../ui/time.tsx";
import { ActionBadge, LocalAndUtc } from "./schedule-parts.tsx";
import { outcomeText } from "./schedule-text.ts";
import styles from "./schedules.module.css";

export const outcomeTones: Readonly<Record<Schedule["status"], Tone>> = {
  applied: "on",
  cancelled: "neutral",
  failed: "danger",
  pending: "accent",
};

/** The outcomes of ended schedules, newest first. */
export function PastSchedules({ schedules }: { schedules: readonly Schedule[] }) {
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const nameOf = usePeople(
    schedules.flatMap(({ created_by, cancelled_by }) => [created_by, cancelled_by ?? []].flat()),
  );
  return (
    <Card title="Past schedules">
      <ol className={styles.past}>
        {schedules.map((schedule) => (
          <li key={schedule.id} className={styles.pastSchedule}>
            <ol className={styles.changes}>
              {schedule.changes.map((change) => (
                <li key={change.at}>
                  <ActionBadge action={change.action} />
                  <LocalAndUtc at={change.at} reader={reader} />
                  <Badge tone={outcomeTones[change.state]}>{outcomeText(change)}</Badge>
                </li>
              ))}
            </ol>
            <p className={styles.note}>
              Set by {nameOf(schedule.created_by)} <Time at={schedule.created_at} />
              {schedule.cancelled_at !== null && (
                <>
                  , cancelled
                  {schedule.cancelled_by !== null && ` by ${nameOf(schedule.cancelled_by)}`}{" "}
                  <Time at={schedule.cancelled_at} />
                </>
              )}
            </p>
            {schedule.status === "failed" && (
              <p className={styles.note}>The operator of Halyard can find the reason.</p>
            )}
          </li>
        ))}
      </ol>
    </Card>
  );
}
