import { Link } from "@tanstack/react-router";
import { FolderKanban, Plus } from "lucide-react";
import { useState } from "react";
import type { Organization, Project } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { CreateProjectDialog } from "./create-project-dialog.tsx";
import styles from "./operator.module.css";
import { useProjects } from "./operator-queries.ts";
import { Section } from "./section.tsx";

/** Environments whose names a row shows. A project can have 50. */
const maxNames = 5;

const columns: readonly Column<Project>[] = [
  {
    id: "name",
    header: "Name",
    cell: ({ id, organization_id, name }) => (
      <Link
        to="/organizations/$organizationId/projects/$projectId"
        params={{ organizationId: organization_id, projectId: id }}
        className={styles.long ?? ""}
      >
        {name}
      </Link>
    ),
  },
  {
    id: "environments",
    header: "Environments",
    cell: ({ environments }) => (
      <span className={styles.badges}>
        {environments.slice(0, maxNames).map(({ id, name }) => (
          <Badge key={id}>{name}</Badge>
        ))}
        {environments.length > maxNames && <Badge>+{environments.length - maxNames}</Badge>}
      </span>
    ),
  },
  { id: "created", header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
];

export function ProjectsSection({ organization }: { organization: Organization }) {
  const [isCreating, setCreating] = useState(false);
  const projects = useProjects(organization.id);
  const limit = organization.limits.projects;
  const count = projects.data?.length;
  const create = () => setCreating(true);
  return (
    <Section
      title="Projects"
      lead={
        limit === null || count === undefined
          ? "A project has flags, and a state of each flag in every environment."
          : `${count} of ${limit} that the plan allows.`
      }
      actions={
        <Button onPress={create}>
          <Plus size={16} aria-hidden /> Create project
        </Button>
      }
    >
      <QueryView query={projects} label="Loading the projects">
        {(all) =>
          all.length === 0 ? (
            <FirstProject organization={organization} />
          ) : (
            <Table label="Projects" columns={columns} rows={all} />
          )
        }
      </QueryView>
      {isCreating && (
        <CreateProjectDialog
          organization={organization}
          count={count ?? 0}
          onClose={() => setCreating(false)}
        />
      )}
    </Section>
  );
}

function FirstProject({ organization }: { organization: Organization }) {
  const path = `/api/v1/organizations/${organization.id}/projects`;
  const command = curl(path, '{"name":"Web shop"}', "OPERATOR_TOKEN");
  return (
    <EmptyState
      icon={FolderKanban}
      title="There are no projects yet"
      examples={<CodeBlock title="Create a project over the API" code={command} />}
    >
      Create a project with its environments. API keys belong to one of its environments.
    </EmptyState>
  );
}
