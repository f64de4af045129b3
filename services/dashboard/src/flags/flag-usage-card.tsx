import { unwrap } from "../api/client.ts";
import type { FlagUsage } from "../api/schema.d.ts";
import { useKeyQuery } from "../session/use-key-query.ts";
import { count, countsText } from "../ui/numbers.ts";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import styles from "./settings-tab.module.css";

const usageDays = 7;

type Row = FlagUsage["environments"][number];

const columns: readonly Column<Row>[] = [
  { id: "name", header: "Environment", cell: ({ name }) => name },
  {
    id: "last",
    header: "Last evaluated",
    cell: ({ last_evaluated_at: at }) => (at === null ? "Never" : <Time at={at} />),
  },
  {
    id: "evaluations",
    header: `Evaluations in ${usageDays} days`,
    align: "end",
    cell: ({ evaluations }) => count(evaluations),
  },
];

/** A column of typed flags: evaluations that SDKs report, and requests for one flag. */
const byVariation: Column<Row> = {
  id: "variations",
  header: "By variation",
  cell: ({ variations = [] }) => countsText(variations),
};

/** Says where the flag is evaluated, so that a person knows whether it can be deleted. */
export function FlagUsageCard() {
  const { flag } = useFlagInPage();
  const params = { path: { id: flag.id }, query: { hours: usageDays * 24 } };
  const usage = useKeyQuery(["flag", flag.key, "usage"], ({ api }, signal) =>
    unwrap(api.GET("/api/v1/flags/{id}/usage", { params, signal })),
  );
  return (
    <Card title="Where it is evaluated">
      <div className={styles.stack}>
        <p className={styles.note}>
          {flag.last_evaluated_at === null ? (
            "No application has asked for this flag yet."
          ) : (
            <>
              An application last asked for this flag <Time at={flag.last_evaluated_at} />.
            </>
          )}{" "}
          A request for all flags counts for each of them.
        </p>
        <QueryView query={usage} label="Loading the evaluations">
          {({ environments }) => (
            <Table
              label="Evaluations by environment"
              columns={flag.value_type === "boolean" ? columns : [...columns, byVariation]}
              rows={environments.map((each) => ({ ...each, id: each.environment_id }))}
            />
          )}
        </QueryView>
      </div>
    </Card>
  );
}
