import { Link, useSearch } from "@tanstack/react-router";
import { ChartColumn } from "lucide-react";
import { useState } from "react";
import type { FlagTraffic } from "../api/schema.d.ts";
import { useFlags } from "../flags/flag-queries.ts";
import { useEnvironment } from "../session/environment.tsx";
import { Button } from "../ui/button.tsx";
import { useChangeSearch } from "../ui/change-search.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { Select } from "../ui/fields.tsx";
import { count } from "../ui/numbers.ts";
import { Filters } from "../ui/page.tsx";
import { Card, EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { datedDay } from "./months.ts";
import styles from "./usage.module.css";
import { useFlagTraffic } from "./usage-queries.ts";
import { trafficHours, type UsageSearch } from "./usage-search.ts";

const firstLimit = 10;
const fullLimit = 1_000;

/** The flags of the project by evaluations. */
export function FlagTrafficCard() {
  const search = useSearch({ from: "/usage" });
  const { environment } = useEnvironment();
  const [limit, setLimit] = useState(firstLimit);
  const traffic = useFlagTraffic({
    hours: search.hours ?? trafficHours[0],
    order: search.order ?? "most",
    limit,
    ...(search.all !== true && { environment_id: environment.id }),
  });
  return (
    <Card title="Flags by traffic" actions={<TrafficFilters search={search} />}>
      <QueryView query={traffic} label="Loading the flags">
        {(read) => (
          <div className={styles.section}>
            <p className={styles.note}>
              Evaluations since {datedDay(read.since.slice(0, 10))}, 00:00 UTC. Days count as a
              whole, and a request for all flags counts for each of them.
            </p>
            <TrafficTable read={read} />
            {read.flags.length === firstLimit && limit === firstLimit && (
              <Button size="small" onPress={() => setLimit(fullLimit)}>
                Show all flags
              </Button>
            )}
          </div>
        )}
      </QueryView>
    </Card>
  );
}

function TrafficFilters({ search }: { search: UsageSearch }) {
  const { environment } = useEnvironment();
  const filter = useChangeSearch<UsageSearch>();
  return (
    <Filters>
      <Select
        label="Period"
        isLabelHidden
        value={String(search.hours ?? trafficHours[0])}
        onChange={(hours) => filter({ hours: Number(hours) })}
        options={trafficHours.map((hours) => ({
          value: String(hours),
          label: hours === 24 ? "Last 24 hours" : `Last ${hours / 24} days`,
        }))}
      />
      <Select
        label="Order"
        isLabelHidden
        value={search.order ?? "most"}
        onChange={(order) => filter({ order: order === "least" ? "least" : undefined })}
        options={[
          { value: "most", label: "Most evaluated first" },
          { value: "least", label: "Least evaluated first" },
        ]}
      />
      <Select
        label="Environments"
        isLabelHidden
        value={search.all === true ? "all" : "one"}
        onChange={(scope) => filter({ all: scope === "all" || undefined })}
        options={[
          { value: "one", label: `In ${environment.name}` },
          { value: "all", label: "In all environments" },
        ]}
      />
    </Filters>
  );
}

type Traffic = FlagTraffic["flags"][number];

function TrafficTable({ read }: { read: FlagTraffic }) {
  const { data: flags } = useFlags();
  const byId = new Map(flags?.map((flag) => [flag.id, flag]));
  if (read.flags.length === 0) return <NoFlags />;
  return (
    <Table
      label="Flags by traffic"
      rows={read.flags.map((flag) => ({ ...flag, id: flag.flag_id }))}
      columns={[
        {
          id: "flag",
          header: "Flag",
          cell: ({ flag_id: id }: Traffic) => <FlagName flag={byId.get(id)} id={id} />,
        },
        {
          id: "evaluations",
          header: "Evaluations",
          align: "end",
          cell: ({ evaluations }) => count(evaluations),
        },
        {
          id: "last",
          header: "Last evaluated",
          cell: ({ last_evaluated_at: at }) => (at === null ? "Never" : <Time at={at} />),
        },
      ]}
    />
  );
}

type FlagNameProps = { flag?: { key: string; name: string } | undefined; id: string };

/** A link to a flag by its key, with its name. A flag that is not in the list yet is shown by its id. */
export function FlagName({ flag, id }: FlagNameProps) {
  if (flag === undefined) return <code>{id}</code>;
  return (
    <span className={styles.flag}>
      <Link to="/flags/$flagKey" params={{ flagKey: flag.key }} preload={false}>
        {flag.key}
      </Link>
      <span className={styles.note}>{flag.name}</span>
    </span>
  );
}

function NoFlags() {
  const code = curl("/api/v1/flags", '{"key":"new-checkout","name":"New checkout"}');
  return (
    <EmptyState
      icon={ChartColumn}
      title="The project has no flags yet"
      examples={<CodeBlock title="Create a flag over the API" code={code} />}
    >
      Create a flag, then <Link to="/connect">connect an application</Link>. Its evaluations are
      here a few seconds later.
    </EmptyState>
  );
}
