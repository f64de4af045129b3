import { type CalendarDateTime, getLocalTimeZone } from "@internationalized/date";
import { useState } from "react";
import type { Reader } from "../ui/dates.ts";
import { useNow } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import {
  findProblems,
  type Occurrence,
  problemsIn,
  type ResolvedTime,
  resolveLocal,
  type TimeProblems,
} from "./local-times.ts";
import type { Times } from "./schedule-text.ts";
import { type ScheduledFlag, useSetSchedule } from "./use-schedule-changes.ts";

/** A time as the person enters it. */
type Entry = {
  local: CalendarDateTime | null;
  occurrence: Occurrence;
  /** Only a part of the time is filled in. */
  isIncomplete?: boolean;
};
export type Entered = Entry & {
  resolved: ResolvedTime | null;
  problem: string | undefined;
  set: (entry: Entry) => void;
};

export type ScheduleForm = {
  enable: Entered;
  disable: Entered;
  times: Times;
  reader: Reader & { zone: string };
  isEmpty: boolean;
  /** Something was entered, be it a part of a time. */
  isDirty: boolean;
  hasProblem: boolean;
  isPending: boolean;
  /** An error that is not about one of the times. */
  error: Error | null;
  clear: () => void;
  save: (seen: string | null) => void;
};

const empty: Entry = { local: null, occurrence: "first" };

/**
 * The entered times, and the request that saves them. The tab holds this state, so that the input survives when another
 * person sets a schedule.
 */
export function useScheduleForm(place: ScheduledFlag, onSaved: () => void): ScheduleForm {
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const [enable, setEnable] = useState(empty);
  const [disable, setDisable] = useState(empty);
  const { mutate, isPending, error, reset } = useSetSchedule(place, () => {
    notify({ text: `${place.flag.key} is scheduled in ${place.environment.name}.` });
    clear();
    onSaved();
  });
  const clear = () => {
    reset();
    setEnable(empty);
    setDisable(empty);
  };
  const resolve = ({ local, occurrence }: Entry) =>
    local && resolveLocal(local, reader.zone, occurrence);
  const enableAt = resolve(enable);
  const disableAt = resolve(disable);
  const times = { enableAt: enableAt?.instant ?? null, disableAt: disableAt?.instant ?? null };
  const rejected = problemsIn(error);
  // The clock of the server decides, so its answer counts where the browser found nothing wrong.
  const problems: TimeProblems = { ...rejected, ...findProblems(times, reader.now) };
  const isEmpty = enableAt === null && disableAt === null;
  const isIncomplete = enable.isIncomplete === true || disable.isIncomplete === true;
  const change = (set: (entry: Entry) => void) => (entry: Entry) => {
    reset();
    set(entry);
  };
  return {
    enable: { ...enable, resolved: enableAt, problem: problems.enable, set: change(setEnable) },
    disable: {
      ...disable,
      resolved: disableAt,
      problem: problems.disable,
      set: change(setDisable),
    },
    times,
    reader,
    isEmpty,
    isDirty: !isEmpty || isIncomplete,
    hasProblem: Object.keys(problems).length > 0 || isIncomplete,
    isPending,
    error: Object.keys(rejected).length > 0 ? null : error,
    clear,
    save: (seen) => mutate({ times, seen }),
  };
}
