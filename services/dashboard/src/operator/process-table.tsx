import { Badge } from "../ui/badge.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { Section } from "./section.tsx";
import { type Process, type ProcessRow, processRows, tasks } from "./status-facts.ts";
import styles from "./status-page.module.css";

const columns: readonly Column<ProcessRow>[] = [
  {
    id: "service",
    header: "Service",
    cell: ({ service }) => (
      <>
        <span className={styles.strong}>{service}</span>
        <div className={styles.note}>{tasks[service]}</div>
      </>
    ),
  },
  { id: "state", header: "State", cell: ({ process }) => <State process={process} /> },
  {
    id: "version",
    header: "Version",
    cell: ({ process, isOtherVersion }) => (
      <span className={styles.badges}>
        {process?.version} {isOtherVersion && <Badge tone="warning">Differs</Badge>}
      </span>
    ),
  },
  {
    id: "started",
    header: "Started",
    cell: ({ process }) => process && <Time at={process.started_at} />,
  },
  {
    id: "id",
    header: "Process",
    cell: ({ process }) => process && <code title={process.id}>{process.id.slice(0, 8)}</code>,
  },
];

export function ProcessTable({ processes }: { processes: readonly Process[] }) {
  return (
    <Section
      title="Processes"
      lead="A process is listed until five seconds after its last report. The gateway and the dashboard do not report."
    >
      <Table label="Processes" columns={columns} rows={processRows(processes)} />
    </Section>
  );
}

function State({ process }: { process: Process | undefined }) {
  if (process === undefined) return <Badge tone="danger">No report</Badge>;
  if (process.state === "current") return <Badge tone="on">Up to date</Badge>;
  if (process.state === "starting") return <Badge>Starting</Badge>;
  return (
    <>
      <Badge tone="danger">Stale for {process.stale_seconds} s</Badge>
      <div className={styles.note}>
        Behind in <code>{process.stale_streams.join(", ")}</code>
      </div>
    </>
  );
}
