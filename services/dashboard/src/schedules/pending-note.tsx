import { getLocalTimeZone } from "@internationalized/date";
import { Link } from "@tanstack/react-router";
import { CalendarClock } from "lucide-react";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { useNow } from "../ui/time.tsx";
import { useFlagSchedules } from "./schedule-queries.ts";
import { describeTimes, timesOf } from "./schedule-text.ts";
import styles from "./schedules.module.css";

/** Says that a schedule of the flag is pending in the environment of the page, with a link to it. */
export function PendingNote() {
  const place = useFlagInPage();
  const { data = [] } = useFlagSchedules(place);
  const reader = { zone: getLocalTimeZone(), now: useNow() };
  const pending = data.find(({ status }) => status === "pending");
  if (pending === undefined) return null;
  return (
    <p className={styles.pendingNote}>
      <CalendarClock size={16} aria-hidden />
      <span>
        Scheduled: {describeTimes(timesOf(pending), reader)}.{" "}
        <Link to="/flags/$flagKey/schedule" params={{ flagKey: place.flag.key }}>
          Show the schedule
        </Link>
      </span>
    </p>
  );
}
