import { useQuery } from "@tanstack/react-query";
import { CircleCheck } from "lucide-react";
import { unwrap } from "../api/client.ts";
import type { SystemStatus } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { count } from "../ui/numbers.ts";
import { Page } from "../ui/page.tsx";
import { Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Time } from "../ui/time.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { ProcessTable } from "./process-table.tsx";
import { PropagationChart } from "./propagation-chart.tsx";
import { millisecondsText, problemsOf, versionsOf } from "./status-facts.ts";
import styles from "./status-page.module.css";

const refreshMs = 5_000;

/** The state of the installation. It is read again while the page is visible. */
export function StatusPage() {
  const { api } = useOperatorSession();
  const query = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => unwrap(api.GET("/api/v1/status", { signal })),
    refetchInterval: refreshMs,
    staleTime: 0,
    // No retries, so that an outage shows immediately. The next refresh tries again.
    retry: false,
  });
  return (
    <Page
      title="Status"
      lead={
        <>
          All processes of this installation, read every {refreshMs / 1000} seconds.{" "}
          {query.isError && query.data !== undefined && (
            <>
              The figures are from <Time at={new Date(query.dataUpdatedAt).toISOString()} />.
            </>
          )}
        </>
      }
    >
      <QueryView query={query} label="Loading the status">
        {(status) => <LoadedStatus status={status} isOld={query.isError} />}
      </QueryView>
    </Page>
  );
}

function LoadedStatus({ status, isOld }: { status: SystemStatus; isOld: boolean }) {
  return (
    <>
      {!isOld && <Summary status={status} />}
      <Figures status={status} />
      <ProcessTable processes={status.processes} />
      <PropagationChart propagation={status.propagation} />
      <DeadLetters letters={status.dead_letters} />
    </>
  );
}

function Summary({ status }: { status: SystemStatus }) {
  const problems = problemsOf(status);
  if (problems.length === 0)
    return (
      <p role="status" className={styles.well}>
        <CircleCheck size={18} aria-hidden /> Everything works.
      </p>
    );
  return (
    <Warning>
      <ul className={styles.problems}>
        {problems.map(({ text, runbook }) => (
          <li key={text}>
            <strong>{text}</strong>
            <span className={styles.note}>
              What to do: “{runbook}” in <code>docs/runbooks.md</code>
            </span>
          </li>
        ))}
      </ul>
    </Warning>
  );
}

/** The figures of the installation, each with its meaning and the sign of trouble. */
function Figures({ status }: { status: SystemStatus }) {
  const { nats, processes, propagation, dead_letters: letters } = status;
  const current = processes.filter(({ state }) => state === "current").length;
  const version = versionsOf(processes)
    .map((each) => each.version)
    .join(", ");
  const figures = [
    {
      label: "NATS",
      value: nats.connected ? "Connected" : "Disconnected",
      note: "Carries changes to the edges. Without it, applications keep their last flags.",
    },
    {
      label: "Processes up to date",
      value: `${current} of ${processes.length}`,
      note: "The others start or have old data. Worry if one stays stale for 20 seconds.",
    },
    {
      label: "Version",
      value: version === "" ? "Unknown" : version,
      note: "One version, except during an upgrade.",
    },
    {
      label: "Changes arrive in",
      value:
        propagation.recent.length === 0
          ? "No changes yet"
          : millisecondsText(propagation.median_ms),
      note: "The median until every edge serves a change. Worry if it keeps rising.",
    },
    {
      label: "Dead letters",
      value: letters === null ? "Unknown" : count(letters.count),
      note: "Messages that could not be processed. Worry about every new one.",
    },
  ];
  return (
    <dl className={styles.figures}>
      {figures.map(({ label, value, note }) => (
        <div key={label} className={styles.figure}>
          <dt>{label}</dt>
          <dd className={styles.value}>{value}</dd>
          <dd className={styles.note}>{note}</dd>
        </div>
      ))}
    </dl>
  );
}
