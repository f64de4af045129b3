import { getLocalTimeZone } from "@internationalized/date";
import type { Schedule } from "../api/schema.d.ts";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { useNow } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import { describeTimes, remainingTimes } from "./schedule-text.ts";
import { type ScheduledFlag, useClearSchedule } from "./use-schedule-changes.ts";

/** Asks before a schedule is cleared. It is open while there is a schedule. */
export function ClearScheduleDialog({
  place,
  schedule,
  onClose,
}: {
  place: ScheduledFlag;
  schedule: Schedule | undefined;
  onClose: () => void;
}) {
  const { flag, environment } = place;
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const { mutate, isPending, error, reset } = useClearSchedule(place, () => {
    notify({ text: `The schedule of ${flag.key} in ${environment.name} is cleared.` });
    onClose();
  });
  const close = () => {
    reset();
    onClose();
  };
  return (
    <ConfirmDialog
      title={`Clear the schedule of ${flag.key}?`}
      action="Clear schedule"
      isOpen={schedule !== undefined}
      onClose={close}
      onConfirm={() => schedule !== undefined && mutate(schedule)}
      isPending={isPending}
      error={error}
    >
      {schedule !== undefined && (
        <p>
          In {environment.name}, this no longer happens:{" "}
          <b>{describeTimes(remainingTimes(schedule), reader)}</b>. The flag stays as it is.
        </p>
      )}
    </ConfirmDialog>
  );
}
