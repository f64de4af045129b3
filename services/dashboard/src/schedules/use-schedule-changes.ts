import { useMutation, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { isEditConflict } from "../api/problem.ts";
import type { Environment, Schedule } from "../api/schema.d.ts";
import { statePathOf, stateRoute } from "../flags/state-route.ts";
import { useKeySession } from "../session/session.tsx";
import { invalidateSchedules, readFlagSchedules } from "./schedule-queries.ts";
import type { Times } from "./schedule-text.ts";

export type ScheduledFlag = { flag: { id: string; key: string }; environment: Environment };

/** Another schedule than the one that the person saw or set is pending, or none. */
export class ScheduleChanged extends Error {
  readonly present: Schedule | undefined;

  constructor(present: Schedule | undefined) {
    super("Someone else changed this schedule first.");
    this.name = "ScheduleChanged";
    this.present = present;
  }
}

const route = `${stateRoute}/schedule` as const;

const pendingIn = (schedules: readonly Schedule[]) =>
  schedules.find(({ status }) => status === "pending");

/**
 * Sets a schedule, or replaces the one that the person saw. The change is rejected if another one is pending, or none:
 * then the schedule that they saw was cleared or has taken effect.
 */
export function useSetSchedule(place: ScheduledFlag, onSaved: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const sendOnce = useSendOnce();
  const path = statePathOf(place);
  return useMutation({
    mutationFn: async ({ times, seen }: { times: Times; seen: string | null }) => {
      const condition = seen === null ? { "If-None-Match": "*" } : { "If-Match": `"${seen}"` };
      const body = {
        ...(times.enableAt !== null && { enable_at: times.enableAt.toISOString() }),
        ...(times.disableAt !== null && { disable_at: times.disableAt.toISOString() }),
      };
      // The condition is no part of the content: after a lost response, the person sees their own schedule as pending.
      const { id, schedules } = await sendOnce([path, body], async (header) => {
        const params = { path, header: { ...header, ...condition } };
        const created = await unwrap(api.POST(route, { params, body }));
        return { id: created.id, schedules: await readFlagSchedules(api, place) };
      });
      // The response may be that of an earlier attempt, whose schedule was cleared or replaced since.
      const status = schedules.find((schedule) => schedule.id === id)?.status ?? "cancelled";
      if (status === "cancelled") throw new ScheduleChanged(pendingIn(schedules));
    },
    onSuccess: onSaved,
    // Also after an error, to show another person's schedule immediately.
    onSettled: () => invalidateSchedules(client, place.flag.key),
  });
}

/**
 * Clears the schedule that the person saw, and no other. `onEnded` is called if none is pending any more, even if the
 * dialog is gone with the schedule.
 */
export function useClearSchedule(
  place: ScheduledFlag,
  { onCleared, onEnded }: { onCleared: () => void; onEnded: () => void },
) {
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ id }: Pick<Schedule, "id">) => {
      const params = { path: statePathOf(place), header: { "If-Match": `"${id}"` } };
      try {
        await unwrap(api.DELETE(route, { params }));
      } catch (error) {
        if (!isEditConflict(error)) throw error;
        throw new ScheduleChanged(pendingIn(await readFlagSchedules(api, place)));
      }
    },
    onSuccess: onCleared,
    onError: (error) => {
      if (error instanceof ScheduleChanged && error.present === undefined) onEnded();
    },
    onSettled: () => invalidateSchedules(client, place.flag.key),
  });
}
