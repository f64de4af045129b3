import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import type { Environment, Schedule } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { invalidateSchedules, readFlagSchedules } from "./schedule-queries.ts";
import { type Times, timesOf } from "./schedule-text.ts";

/** The flag and environment of a schedule. */
export type ScheduledFlag = { flag: { id: string; key: string }; environment: Environment };

/** Somebody else set, replaced or cleared the schedule after it was shown. Nothing was changed. */
class ScheduleChanged extends Error {
  constructor() {
    super("Somebody else changed this schedule meanwhile. Nothing was saved.");
    this.name = "ScheduleChanged";
  }
}

/**
 * Throws unless the pending schedule is the one that the person saw. The API has no conditional change of schedules, so
 * a change within the same moment is still possible; the history names both. A schedule with the wanted times is no
 * conflict: it may be the person's own, whose response was lost.
 */
async function checkPending(
  api: Api,
  place: ScheduledFlag,
  seen: string | null,
  wanted?: Times,
): Promise<void> {
  const schedules = await readFlagSchedules(api, place);
  const pending = schedules.find(({ status }) => status === "pending");
  const isSeen = (pending?.id ?? null) === seen;
  if (!isSeen && !(pending && wanted && isSame(timesOf(pending), wanted)))
    throw new ScheduleChanged();
}

const isSame = (one: Times, other: Times): boolean =>
  one.enableAt?.getTime() === other.enableAt?.getTime() &&
  one.disableAt?.getTime() === other.disableAt?.getTime();

const pathOf = ({ flag, environment }: ScheduledFlag) => ({
  flagId: flag.id,
  envId: environment.id,
});

/** Sets a schedule, or replaces the one that the person saw. */
export function useSetSchedule(place: ScheduledFlag, onSaved: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const sendOnce = useSendOnce();
  const path = pathOf(place);
  return useMutation({
    mutationFn: async ({ times, seen }: { times: Times; seen: string | null }) => {
      await checkPending(api, place, seen, times);
      const body = {
        ...(times.enableAt !== null && { enable_at: times.enableAt.toISOString() }),
        ...(times.disableAt !== null && { disable_at: times.disableAt.toISOString() }),
      };
      return sendOnce([path, body], (header) =>
        unwrap(
          api.POST("/api/v1/flags/{flagId}/environments/{envId}/schedule", {
            params: { path, header },
            body,
          }),
        ),
      );
    },
    onSuccess: onSaved,
    // Also after an error: another person's schedule is shown at once.
    onSettled: () => invalidateSchedules(client, place.flag.key),
  });
}

/** Clears the schedule that the person saw. */
export function useClearSchedule(place: ScheduledFlag, onCleared: () => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ id }: Pick<Schedule, "id">) => {
      await checkPending(api, place, id);
      await unwrap(
        api.DELETE("/api/v1/flags/{flagId}/environments/{envId}/schedule", {
          params: { path: pathOf(place) },
        }),
      );
    },
    onSuccess: onCleared,
    onSettled: () => invalidateSchedules(client, place.flag.key),
  });
}
