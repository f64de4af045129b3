import { getLocalTimeZone } from "@internationalized/date";
import { CalendarClock } from "lucide-react";
import { useState } from "react";
import type { Schedule } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { stateIn, summaryOf } from "../flags/flag-search.ts";
import { usePermission } from "../session/use-permission.ts";
import { offText } from "../state/serve.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { useKeptFocus } from "../ui/kept-focus.ts";
import { Card, EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time, useNow } from "../ui/time.tsx";
import { ClearScheduleDialog } from "./clear-schedule-dialog.tsx";
import { PastSchedules } from "./past-schedules.tsx";
import { ScheduleForm } from "./schedule-form.tsx";
import { ActionBadge, LocalAndUtc } from "./schedule-parts.tsx";
import { useFlagSchedules } from "./schedule-queries.ts";
import { describeTimes, outcomeText, timesOf } from "./schedule-text.ts";
import styles from "./schedules.module.css";
import { useScheduleForm } from "./use-schedule-form.ts";

/** The schedule of a flag in the chosen environment: the pending one, a form for another, and the past ones. */
export function ScheduleTab() {
  const place = useFlagInPage();
  const query = useFlagSchedules(place);
  // Another environment has its own form, without the times that were entered for this one.
  return (
    <QueryView key={place.environment.id} query={query} label="Loading the schedule">
      {(schedules) => <Schedules schedules={schedules} />}
    </QueryView>
  );
}

function Schedules({ schedules }: { schedules: readonly Schedule[] }) {
  const place = useFlagInPage();
  const { flag, environment } = place;
  const { reason, isOffered } = usePermission("change_states", environment);
  const mayChange = reason === undefined;
  // From the first focus on, so that another person's schedule does not take away a half-entered time.
  const [isEditing, setEditing] = useState(false);
  const form = useScheduleForm(place, () => setEditing(false));
  const cancel = () => {
    form.clear();
    setEditing(false);
  };
  const pending = schedules.find(({ status }) => status === "pending");
  const past = schedules.filter(({ status }) => status !== "pending");
  const frame = useKeptFocus(`${pending?.id} ${isEditing}`);
  return (
    <div ref={frame} tabIndex={-1} className={styles.stack}>
      {pending !== undefined && (
        <Pending
          schedule={pending}
          onReplace={isOffered && !isEditing ? () => setEditing(true) : undefined}
        />
      )}
      {pending === undefined && !mayChange && (
        <EmptyState icon={CalendarClock} title="Nothing is scheduled">
          {reason}
        </EmptyState>
      )}
      {mayChange && (pending === undefined || isEditing) && (
        <Card
          title={`${pending === undefined ? "Schedule" : "Replace the schedule of"} ${flag.key} in ${environment.name}`}
        >
          <ScheduleForm
            form={form}
            pending={pending}
            onFocus={() => setEditing(true)}
            {...(pending !== undefined && { onCancel: cancel })}
          />
        </Card>
      )}
      {past.length > 0 && <PastSchedules schedules={past} />}
      {schedules.length === 0 && mayChange && <Example />}
    </div>
  );
}

type PendingProps = { schedule: Schedule; onReplace: (() => void) | undefined };

/** The pending schedule: what it will do, and who made it. */
function Pending({ schedule, onReplace }: PendingProps) {
  const place = useFlagInPage();
  const { reason } = usePermission("change_states", place.environment);
  const [isClearing, setClearing] = useState(false);
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const nameOf = usePeople([schedule.created_by]);
  return (
    <Card
      title={`Scheduled in ${place.environment.name}`}
      actions={
        onReplace !== undefined && (
          <span className={styles.actions}>
            <Button size="small" onPress={onReplace} whyNot={reason}>
              Replace
            </Button>
            <Button size="small" onPress={() => setClearing(true)} whyNot={reason}>
              Clear
            </Button>
          </span>
        )
      }
    >
      <div className={styles.stack}>
        <p className={styles.sentence}>{describeTimes(timesOf(schedule), reader)}</p>
        <ol className={styles.changes}>
          {schedule.changes.map((change) => (
            <li key={change.at}>
              <ActionBadge action={change.action} />
              <LocalAndUtc at={change.at} reader={reader} />
              <span className={styles.note}>
                {change.state === "pending" ? <Time at={change.at} /> : outcomeText(change)}
              </span>
            </li>
          ))}
        </ol>
        <ServedNote />
        <p className={styles.note}>
          Set by {nameOf(schedule.created_by)} <Time at={schedule.created_at} />
        </p>
      </div>
      {isClearing && (
        <ClearScheduleDialog place={place} schedule={schedule} onClose={() => setClearing(false)} />
      )}
    </Card>
  );
}

/** Says what a typed flag serves while it is on and while it is off. A schedule changes only the switch. */
function ServedNote() {
  const { flag, environment } = useFlagInPage();
  const state = stateIn(flag, environment.id);
  if (state?.serve === undefined) return null;
  const on = summaryOf({ ...state, enabled: true });
  return (
    <p className={styles.note}>
      On: {on}. Off: everybody gets {offText(state.off_variation)}.
    </p>
  );
}

function Example() {
  const { flag, environment } = useFlagInPage();
  const path = `/api/v1/flags/${flag.id}/environments/${environment.id}/schedule`;
  const code = curl(path, `{"enable_at":"${exampleTime()}"}`);
  return <CodeBlock title="Or schedule it over the API" code={code} />;
}

const weekMs = 7 * 86_400_000;

/** Returns a full hour in a week. */
function exampleTime(): string {
  const hour = new Date(Date.now() + weekMs);
  hour.setUTCMinutes(0, 0, 0);
  return hour.toISOString().replace(".000", "");
}
