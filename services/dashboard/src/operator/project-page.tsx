import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Project } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { type BackLink, Page } from "../ui/page.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { ChangesSection } from "./changes-section.tsx";
import { DeletionCard } from "./deletion-card.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { EnvironmentsSection } from "./environments-section.tsx";
import { KeysSection } from "./keys-section.tsx";
import { RenameDialog } from "./name-dialog.tsx";
import { projectRoute, useOrganization, useProject } from "./operator-queries.ts";

/** A project: its environments, API keys and newest changes. */
export function ProjectPage() {
  const path = useParams({ from: "/organizations/$organizationId/projects/$projectId" });
  const query = useProject(path);
  const organization = useOrganization(path.organizationId);
  const { organizationId } = path;
  const back: BackLink = {
    link: { to: "/organizations/$organizationId", params: { organizationId } },
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
      <DeletionCard kind="project" name={project.name} onDelete={() => setDialog("delete")} />
      <ProjectDialog project={project} dialog={dialog} onClose={() => setDialog(undefined)} />
    </Page>
  );
}

type ProjectDialogProps = {
  project: Project;
  dialog: "rename" | "delete" | undefined;
  onClose: () => void;
};

function ProjectDialog({ project, dialog, onClose }: ProjectDialogProps) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const path = { organizationId: project.organization_id, projectId: project.id };
  if (dialog === "rename")
    return (
      <RenameDialog
        title="Rename the project"
        name={project.name}
        rename={(name) => unwrap(api.PATCH(projectRoute, { params: { path }, body: { name } }))}
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
        send={() =>
          unwrap(api.DELETE(projectRoute, { params: { path, query: { confirm: project.id } } }))
        }
        leave={() =>
          navigate({
            to: "/organizations/$organizationId",
            params: { organizationId: project.organization_id },
          })
        }
        onClose={onClose}
      />
    );
  return null;
}
