import { getLocalTimeZone } from "@internationalized/date";
import { useState } from "react";
import type { Schedule } from "../api/schema.d.ts";
import { usePeople } from "../changes/people.ts";
import { CautionBadge } from "../state/caution.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { Time, useNow } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import { describeTimes, remainingTimes } from "./schedule-text.ts";
import { ScheduleChanged, type ScheduledFlag, useClearSchedule } from "./use-schedule-changes.ts";

type ClearScheduleDialogProps = { place: ScheduledFlag; schedule: Schedule; onClose: () => void };

/**
 * Confirms the clearing of the schedule that was pending when the dialog opened. If another schedule has replaced it, the
 * dialog shows the new one and needs a second confirmation.
 */
export function ClearScheduleDialog({ place, schedule, onClose }: ClearScheduleDialogProps) {
  const { flag, environment } = place;
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const [first, setFirst] = useState(schedule);
  const done = (text: string) => () => {
    notify({ text });
    onClose();
  };
  const { mutate, isPending, error } = useClearSchedule(place, {
    onCleared: done(`The schedule of ${flag.key} in ${environment.name} is cleared.`),
    onEnded: done(
      `The schedule of ${flag.key} in ${environment.name} is no longer pending: it has taken effect, or someone else cleared it.`,
    ),
  });
  const theirs = error instanceof ScheduleChanged ? error.present : undefined;
  const asked = theirs ?? first;
  const clear = () => {
    setFirst(asked);
    mutate(asked);
  };
  return (
    <ConfirmDialog
      title={`Clear the schedule of ${flag.key}?`}
      action="Clear schedule"
      onClose={onClose}
      onConfirm={clear}
      isPending={isPending}
      error={error instanceof ScheduleChanged ? null : error}
    >
      {theirs !== undefined && <Replaced theirs={theirs} />}
      <p>
        {environment.caution && <CautionBadge />} In <bdi>{environment.name}</bdi>, this no longer
        happens: <b>{describeTimes(remainingTimes(asked), reader)}</b>. The flag stays as it is.
      </p>
    </ConfirmDialog>
  );
}

function Replaced({ theirs }: { theirs: Schedule }) {
  const nameOf = usePeople([theirs.created_by]);
  return (
    <Warning>
      Someone else changed this schedule first, so nothing was cleared. The current one was set by{" "}
      {nameOf(theirs.created_by)} <Time at={theirs.created_at} />. Clear it if you still want to.
    </Warning>
  );
}
