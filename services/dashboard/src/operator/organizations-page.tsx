import { Link } from "@tanstack/react-router";
import { Building2, Plus, SearchX } from "lucide-react";
import { useState } from "react";
import type { Organization } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { SearchField } from "../ui/fields.tsx";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { CreateOrganizationDialog } from "./create-organization-dialog.tsx";
import styles from "./operator.module.css";
import { useOrganizations, usePlans } from "./operator-queries.ts";
import { limitLabels, limitNames, limitText } from "./plans.ts";

/** Maximum number of rows. The search finds the others. */
const maxRows = 200;

/** All organizations of the installation. */
export function OrganizationsPage() {
  const [isCreating, setCreating] = useState(false);
  const organizations = useOrganizations();
  // The dialog cannot be sent without the plans. They are read now, so that Enter works after a quickly typed name.
  usePlans();
  const create = () => setCreating(true);
  return (
    <Page
      title="Organizations"
      lead="An organization is a customer or a team. Its plan limits what its applications use."
      actions={
        <Button variant="primary" onPress={create}>
          <Plus size={16} aria-hidden /> Create organization
        </Button>
      }
    >
      <QueryView query={organizations} label="Loading the organizations">
        {(all) =>
          all.length === 0 ? (
            <FirstOrganization onCreate={create} />
          ) : (
            <OrganizationList all={all} />
          )
        }
      </QueryView>
      {isCreating && <CreateOrganizationDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

const columns: readonly Column<Organization>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, name }) => (
      <Link
        to="/organizations/$organizationId"
        params={{ organizationId: id }}
        className={styles.long ?? ""}
      >
        {name}
      </Link>
    ),
  },
  { id: "plan", header: "Plan", cell: ({ plan }) => <Badge tone="accent">{plan}</Badge> },
  ...limitNames.map((name) => ({
    id: name,
    header: limitLabels[name],
    align: "end" as const,
    cell: ({ limits }: Organization) => limitText(limits, name),
  })),
  { id: "created", header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
];

function OrganizationList({ all }: { all: readonly Organization[] }) {
  const [text, setText] = useState("");
  const wanted = text.trim().toLowerCase();
  const found = all
    .filter(({ name, plan }) => `${name}\n${plan}`.toLowerCase().includes(wanted))
    .toSorted((left, right) => left.name.localeCompare(right.name));
  return (
    <>
      <Filters>
        <SearchField
          label="Search organizations by name or plan"
          placeholder="Search by name or plan"
          value={text}
          onChange={setText}
        />
        <span className={styles.note} aria-live="polite">
          {found.length === all.length
            ? countOf(all.length)
            : `${found.length} of ${countOf(all.length)}`}
          {found.length > maxRows && `, the first ${maxRows} are shown`}
        </span>
      </Filters>
      {found.length === 0 ? (
        <EmptyState icon={SearchX} title="No organization matches">
          Change the search.
        </EmptyState>
      ) : (
        <Table label="Organizations" columns={columns} rows={found.slice(0, maxRows)} />
      )}
    </>
  );
}

const countOf = (count: number) => (count === 1 ? "1 organization" : `${count} organizations`);

function FirstOrganization({ onCreate }: { onCreate: () => void }) {
  const body = '{"name":"Example Ltd","plan":"pro"}';
  const command = curl("/api/v1/organizations", body, "OPERATOR_TOKEN");
  return (
    <EmptyState
      icon={Building2}
      title="No organization exists yet"
      action={
        <Button variant="primary" onPress={onCreate}>
          Create the first organization
        </Button>
      }
      examples={<CodeBlock title="Or create it over the API" code={command} />}
    >
      Create an organization, add a user and a project, then issue a server key for the user. With
      this key, the user signs in here and manages flags.
    </EmptyState>
  );
}
