import { CircleCheck } from "lucide-react";
import { staleDays, useFlags, useStaleIds } from "../flags/flag-queries.ts";
import { typeLabel } from "../flags/flag-search.ts";
import { Badge } from "../ui/badge.tsx";
import { ButtonLink } from "../ui/button.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { FlagName } from "./flag-traffic.tsx";
import styles from "./usage.module.css";

/** Flags that the card lists. The list of flags, filtered, has them all. */
const maxRows = 10;

/** The flags that no environment has evaluated for a month, and when they can be deleted. */
export function StaleFlagsCard() {
  const stale = useStaleIds(true);
  return (
    <Card
      title={`Not evaluated for ${staleDays} days`}
      actions={
        <ButtonLink size="small" to="/flags" search={{ stale: true }}>
          Open in the list of flags
        </ButtonLink>
      }
    >
      <div className={styles.section}>
        <p className={styles.advice}>
          A flag can be deleted when no code asks for it. Search your code for its key first: a job
          that runs once a quarter is not visible here. A kill switch in this list protects nothing
          any more. A flag that another one still requires is not in this list. New flags appear{" "}
          {staleDays} days after their creation at the earliest.
        </p>
        <QueryView query={stale} label="Loading the flags">
          {(ids) => <StaleFlags ids={ids} />}
        </QueryView>
      </div>
    </Card>
  );
}

function StaleFlags({ ids }: { ids: ReadonlySet<string> }) {
  const { data: flags = [] } = useFlags();
  if (ids.size === 0)
    return (
      <p className={styles.good}>
        <CircleCheck size={16} aria-hidden /> Every older flag was evaluated within the last{" "}
        {staleDays} days.
      </p>
    );
  const found = flags.filter(({ id }) => ids.has(id));
  return (
    <>
      <Table
        label={`Flags not evaluated for ${staleDays} days`}
        rows={found.slice(0, maxRows)}
        columns={[
          { id: "flag", header: "Flag", cell: (flag) => <FlagName flag={flag} id={flag.id} /> },
          { id: "type", header: "Type", cell: ({ type }) => <Badge>{typeLabel(type)}</Badge> },
          { id: "created", header: "Created", cell: ({ created_at: at }) => <Time at={at} /> },
        ]}
      />
      {ids.size > maxRows && (
        <p className={styles.note}>
          {maxRows} of {ids.size} flags. The list of flags has them all.
        </p>
      )}
    </>
  );
}
