import { Link } from "@tanstack/react-router";
import { Plus, Users } from "lucide-react";
import { useState } from "react";
import type { Audience } from "../api/schema.d.ts";
import { useAudiences } from "../references/audience-queries.ts";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { SearchField } from "../ui/fields.tsx";
import { count } from "../ui/numbers.ts";
import { Filters, Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { reachText } from "./audience-draft.ts";
import { CreateAudienceDialog } from "./create-audience-dialog.tsx";

/** The audiences of the project: named sets of users that rules of flags refer to. */
export function AudiencesPage() {
  const [isCreating, setCreating] = useState(false);
  const { reason, isOffered } = usePermission("change_project");
  const audiences = useAudiences();
  const create = isOffered && (
    <Button variant="primary" onPress={() => setCreating(true)} whyNot={reason}>
      <Plus size={16} aria-hidden /> Create audience
    </Button>
  );
  return (
    <Page
      title="Audiences"
      lead="Named sets of users. Rules of all flags can use them, in every environment."
      actions={audiences.data?.length !== 0 && create}
    >
      <QueryView query={audiences} label="Loading the audiences">
        {(all) =>
          all.length === 0 ? (
            <EmptyState icon={Users} title="No audiences yet" action={create}>
              An audience is a set of users, such as beta testers. Choose its users by their
              attributes, or upload a list of up to a million. A change of the audience then reaches
              all flags that use it.
            </EmptyState>
          ) : (
            <AudienceList audiences={all} />
          )
        }
      </QueryView>
      {isCreating && <CreateAudienceDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}

function AudienceList({ audiences }: { audiences: readonly Audience[] }) {
  const [text, setText] = useState("");
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = audiences.filter(({ key, name, description }) =>
    words.every((word) => `${key} ${name} ${description}`.toLowerCase().includes(word)),
  );
  return (
    <>
      <Filters>
        <SearchField
          label="Search audiences by key, name or description"
          placeholder="Search by key or name"
          value={text}
          onChange={setText}
        />
      </Filters>
      <p role="status" className={found.length > 0 ? "visually-hidden" : ""}>
        {found.length === 0
          ? "No audience matches."
          : `${found.length} of ${audiences.length} audiences`}
      </p>
      {found.length > 0 && <AudienceTable audiences={found} />}
    </>
  );
}

function AudienceTable({ audiences }: { audiences: readonly Audience[] }) {
  return (
    <Table
      label="Audiences"
      rows={audiences.map((audience) => ({ id: audience.key, ...audience }))}
      columns={[
        {
          id: "key",
          header: "Audience",
          cell: ({ key, name }) => (
            <>
              <Link to="/audiences/$audienceKey" params={{ audienceKey: key }}>
                <code>{key}</code>
              </Link>{" "}
              {name}
            </>
          ),
        },
        {
          id: "conditions",
          header: "Conditions",
          align: "end",
          cell: ({ match }) => count(match.flat().length),
        },
        {
          id: "entries",
          header: "Entries of the list",
          align: "end",
          cell: ({ list }) => (list === null ? "no list" : count(list.count)),
        },
        {
          id: "uses",
          header: "Used by",
          cell: ({ used_by: uses }) => (uses.length === 0 ? "no flag" : reachText(uses)),
        },
      ]}
    />
  );
}
