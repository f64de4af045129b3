import { ArrowRight } from "lucide-react";
import { type FormEvent, useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { Schedule } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { stateIn } from "../flags/flag-search.ts";
import { useSwitchWarning } from "../flags/use-change-warning.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { useCaution } from "../state/caution.tsx";
import { Button } from "../ui/button.tsx";
import { DateTimeField } from "../ui/date-time-field.tsx";
import { instantText, timeText } from "../ui/dates.ts";
import { DialogActions } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Select } from "../ui/fields.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { Warning } from "../ui/panels.tsx";
import { type ResolvedTime, resolveLocal } from "./local-times.ts";
import { hasTwoTimes, oneTimeOnly, scheduleProposal } from "./schedule-proposal.ts";
import {
  describeTimes,
  inUtc,
  positionsOf,
  remainingTimes,
  type Times,
  withoutEffect,
} from "./schedule-text.ts";
import styles from "./schedules.module.css";
import { ScheduleChanged } from "./use-schedule-changes.ts";
import type { Entered, ScheduleForm as Form } from "./use-schedule-form.ts";

type ScheduleFormProps = {
  form: Form;
  pending: Schedule | undefined;
  onFocus: () => void;
  /** Closes the form. Without it, the form stays. */
  onCancel?: () => void;
};

/** Sets the schedule of the flag, or replaces the pending one. */
export function ScheduleForm({ form, pending, onFocus, onCancel }: ScheduleFormProps) {
  const { enable, disable, reader, isEmpty, isDirty, hasProblem, isPending, error } = form;
  const isChanged = isEditConflict(error) || error instanceof ScheduleChanged;
  const { isProposed, isChecking, check, dialog } = useScheduling(form, pending);
  useUnsaved(isDirty);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const isBlocked = isProposed && hasTwoTimes(form.times);
    if (!isEmpty && !hasProblem && !isChecking && !isBlocked) void check();
  };
  return (
    <form onSubmit={submit} onFocus={onFocus} className={styles.form}>
      {pending !== undefined && (
        <Warning>
          This replaces the current schedule:{" "}
          <b>{describeTimes(remainingTimes(pending), reader)}</b>. It stays until you save.
        </Warning>
      )}
      <div className={styles.fields}>
        <TimeField
          label="Turn on at"
          entered={enable}
          reader={reader}
          autoFocus={onCancel !== undefined && isEmpty}
        />
        <TimeField label="Turn off at" entered={disable} reader={reader} />
      </div>
      <Preview form={form} />
      {isProposed && <ProtectedNote times={form.times} />}
      {isChanged && <Changed isPending={pending !== undefined} />}
      {error !== null && !isChanged && <ErrorPanel error={error} />}
      <DialogActions>
        {onCancel !== undefined && <Button onPress={onCancel}>Cancel</Button>}
        <Button
          type="submit"
          variant="primary"
          isPending={isPending || isChecking}
          isDisabled={isEmpty || hasProblem}
          whyNot={isProposed && hasTwoTimes(form.times) ? oneTimeOnly : undefined}
        >
          {isProposed ? "Request the change" : actionOf(pending)}
        </Button>
      </DialogActions>
      {dialog}
    </form>
  );
}

const actionOf = (pending: Schedule | undefined): string =>
  pending === undefined ? "Schedule" : "Replace schedule";

/** Saves the times, after a question where one is needed, or proposes them in a protected environment. */
function useScheduling(form: Form, pending: Schedule | undefined) {
  const { flag, environment } = useFlagInPage();
  const { times, reader, save, clear } = form;
  const warningOf = useSwitchWarning(environment);
  const [isChecking, setChecking] = useState(false);
  const { ask, dialog } = useCaution(environment);
  const { isProposed, change } = useProposing(environment);
  const question = () => {
    const before = pending && describeTimes(remainingTimes(pending), reader);
    const after = describeTimes(times, reader);
    const changes = [{ label: "Schedule", before: before ?? "none", after }];
    const title = `Change the schedule in ${environment.name}?`;
    return { title, action: actionOf(pending), changes };
  };
  const check = async () => {
    setChecking(true);
    const warning = await warningOf(flag, positionsOf(times));
    setChecking(false);
    change({
      make: () =>
        ask(
          () => ({ ...question(), warning }),
          () => save(pending?.id ?? null),
        ),
      proposal: () => {
        const proposal = scheduleProposal({ flag, environment }, times);
        return { ...proposal, warning, onOpened: clear };
      },
    });
  };
  return { isProposed, isChecking, check, dialog };
}

/** Says how changes of a protected environment are planned. */
function ProtectedNote({ times }: { times: Times }) {
  return (
    <p className={styles.note}>
      {hasTwoTimes(times)
        ? oneTimeOnly
        : "This environment is protected: the change becomes a request, which is applied at its time once it is approved."}
    </p>
  );
}

/** Warns that the schedule changed. The form shows the current schedule and its author above. */
function Changed({ isPending }: { isPending: boolean }) {
  return (
    <Warning>
      Someone else changed this schedule first. Nothing was saved.{" "}
      {isPending
        ? "The current schedule is above. Save again to replace it with yours."
        : "The one that you saw was cleared or has taken effect. Save again to set yours."}
    </Warning>
  );
}

/** One of the two times, with UTC, and with what a change of the clocks does to it. */
function TimeField({
  label,
  entered: { local, occurrence, resolved, problem, set },
  reader,
  autoFocus = false,
}: {
  label: string;
  entered: Entered;
  reader: Form["reader"];
  autoFocus?: boolean;
}) {
  return (
    <div className={styles.field}>
      <DateTimeField
        label={label}
        value={local}
        onChange={(next) => set({ local: next, occurrence: "first" })}
        onIncomplete={(isIncomplete) => set({ local, occurrence, isIncomplete })}
        autoFocus={autoFocus}
        error={problem}
        description={utcNote(resolved, reader)}
      />
      {resolved?.kind === "twice" && local !== null && (
        <Select
          label="Clocks go back: this time comes twice"
          value={occurrence}
          onChange={(next) => set({ local, occurrence: next })}
          options={(["first", "second"] as const).map((value) => ({
            value,
            label: `The ${value} time, ${timeText(resolveLocal(local, reader.zone, value).instant, inUtc(reader))} UTC`,
          }))}
        />
      )}
    </div>
  );
}

function utcNote(resolved: ResolvedTime | null, reader: Form["reader"]): string {
  if (resolved === null) return `Optional, in your time zone (${reader.zone})`;
  const utc = `${instantText(resolved.instant, inUtc(reader))} UTC`;
  if (resolved.kind !== "skipped") return utc;
  return `${utc}. Clocks go forward over the time that you entered, so ${timeText(resolved.instant, reader)} is used.`;
}

/** Says what will happen, while the times are entered. */
function Preview({ form: { times, hasProblem, reader } }: { form: Form }) {
  const { flag, environment } = useFlagInPage();
  const isOn = stateIn(flag, environment.id)?.enabled ?? false;
  const sentence = describeTimes(times, reader);
  return (
    <div className={styles.preview} aria-live="polite">
      <ArrowRight size={16} aria-hidden />
      {hasProblem && <p>Correct the times to see what will happen.</p>}
      {!hasProblem && sentence === undefined && (
        <p>
          Enter one time, or both for a window. Their order decides: on then off, or off then on.
        </p>
      )}
      {!hasProblem && sentence !== undefined && (
        <div>
          <p>
            <b>{sentence}</b>
          </p>
          <p className={styles.note}>{withoutEffect(times, isOn)}</p>
        </div>
      )}
    </div>
  );
}
