import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Project } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { Page } from "../ui/page.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { ChangesSection } from "./changes-section.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { EnvironmentsSection } from "./environments-section.tsx";
import { KeysSection } from "./keys-section.tsx";
import styles from "./operator.module.css";
import { type ProjectPath, useOrganization, useProject } from "./operator-queries.ts";
import { RenameDialog } from "./rename-dialog.tsx";

/** A project: its environments, API keys and newest changes. */
export function ProjectPage() {
  const path = useParams({ strict: false }) as ProjectPath;
  const query = useProject(path);
  const organization = useOrganization(path.organizationId);
  const back = {
    to: `/organizations/${path.organizationId}`,
    label: organization.data?.name ?? "Organization",
  };
  if (query.data !== undefined) return <LoadedProject project={query.data} back={back} />;
  return (
    <Page title="Project" back={back}>
      <QueryView query={query} label="Loading the project">
        {() => null}
      </QueryView>
    </Page>
  );
}

type BackLink = { to: string; label: string };

function LoadedProject({ project, back }: { project: Project; back: BackLink }) {
  const [dialog, setDialog] = useState<"rename" | "delete">();
  return (
    <Page
      title={project.name}
      back={back}
      facts={
        <>
          <code>{project.id}</code>
          <CopyButton text={project.id} label="Copy the id" />
        </>
      }
      actions={<Button onPress={() => setDialog("rename")}>Rename</Button>}
    >
      <EnvironmentsSection project={project} />
      <KeysSection project={project} />
      <ChangesSection project={project} />
      <Card title="Delete the project">
        <div className={styles.danger}>
          <p>
            Ends everything that belongs to {project.name}: its API keys, flags, schedules and
            webhooks.
          </p>
          <Button variant="danger" onPress={() => setDialog("delete")}>
            Delete project
          </Button>
        </div>
      </Card>
      <ProjectDialog project={project} dialog={dialog} onClose={() => setDialog(undefined)} />
    </Page>
  );
}

function ProjectDialog({
  project,
  dialog,
  onClose,
}: {
  project: Project;
  dialog: "rename" | "delete" | undefined;
  onClose: () => void;
}) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const path = { organizationId: project.organization_id, projectId: project.id };
  const route = "/api/v1/organizations/{organizationId}/projects/{projectId}";
  if (dialog === "rename")
    return (
      <RenameDialog
        title="Rename the project"
        name={project.name}
        rename={(name) => unwrap(api.PATCH(route, { params: { path }, body: { name } }))}
        onClose={onClose}
      />
    );
  if (dialog === "delete")
    return (
      <DeletionDialog
        kind="project"
        name={project.name}
        ends={[
          "The API keys of all its environments stop within a second, and open streams close.",
          "Its flags are gone. Applications use their default values.",
          "Its schedules are cancelled. Its webhooks are deleted, without an event.",
          "The audit log stays until its retention ends.",
        ]}
        send={() => unwrap(api.DELETE(route, { params: { path, query: { confirm: project.id } } }))}
        leave={() => navigate({ to: `/organizations/${project.organization_id}` as "/" })}
        onClose={onClose}
      />
    );
  return null;
}
