import { Plus } from "lucide-react";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import type { Environment, Project } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { CautionBadge } from "../state/caution.tsx";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { RowMenu } from "../ui/menu.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { NameDialog, RenameDialog } from "./name-dialog.tsx";
import styles from "./operator.module.css";
import { useWrite } from "./operator-queries.ts";
import { Section } from "./section.tsx";

const environmentsRoute = "/api/v1/projects/{projectId}/environments";
const environmentRoute = `${environmentsRoute}/{environmentId}` as const;

type OpenDialog = { kind: "create" } | { kind: "rename" | "delete"; environment: Environment };

export function EnvironmentsSection({ project }: { project: Project }) {
  const [dialog, setDialog] = useState<OpenDialog>();
  const { mark, error } = useMark(project.id);
  return (
    <Section
      title="Environments"
      lead="Every flag of the project has a separate state in each environment."
      actions={
        <Button onPress={() => setDialog({ kind: "create" })}>
          <Plus size={16} aria-hidden /> Create environment
        </Button>
      }
    >
      {error !== null && <ErrorPanel error={error} />}
      <Table
        label="Environments"
        columns={columnsWith(setDialog, mark)}
        rows={project.environments}
      />
      <EnvironmentDialog
        projectId={project.id}
        dialog={dialog}
        onClose={() => setDialog(undefined)}
      />
    </Section>
  );
}

/** Returns a function that adds the mark to an environment, or removes it. */
function useMark(projectId: string) {
  const { api } = useOperatorSession();
  const { mutate, error } = useWrite(
    ({ id, caution }: Environment) =>
      unwrap(
        api.PATCH(environmentRoute, {
          params: { path: { projectId, environmentId: id } },
          body: { caution: !caution },
        }),
      ),
    () => undefined,
  );
  return { mark: (environment: Environment) => mutate(environment), error };
}

const columnsWith = (
  open: (dialog: OpenDialog) => void,
  mark: (environment: Environment) => void,
): readonly Column<Environment>[] => [
  {
    id: "name",
    header: "Name",
    cell: ({ name, caution }) => (
      <span className={styles.long}>
        {name} {caution && <CautionBadge />}
      </span>
    ),
  },
  { id: "created", header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
  actionsColumn((environment) => (
    <RowMenu
      name={environment.name}
      entries={[
        {
          id: "mark",
          label: environment.caution ? "Remove the mark “Caution”" : "Mark with “Caution”",
          onAction: () => mark(environment),
        },
        { id: "rename", label: "Rename", onAction: () => open({ kind: "rename", environment }) },
        {
          id: "delete",
          label: "Delete",
          isDanger: true,
          onAction: () => open({ kind: "delete", environment }),
        },
      ]}
    />
  )),
];

type EnvironmentDialogProps = {
  projectId: string;
  dialog: OpenDialog | undefined;
  onClose: () => void;
};

function EnvironmentDialog({ projectId, dialog, onClose }: EnvironmentDialogProps) {
  const { api } = useOperatorSession();
  if (dialog === undefined) return null;
  if (dialog.kind === "create")
    return <CreateEnvironmentDialog projectId={projectId} onClose={onClose} />;
  const { id, name } = dialog.environment;
  const path = { projectId, environmentId: id };
  if (dialog.kind === "rename")
    return (
      <RenameDialog
        title="Rename the environment"
        name={name}
        rename={(next) =>
          unwrap(api.PATCH(environmentRoute, { params: { path }, body: { name: next } }))
        }
        onClose={onClose}
      />
    );
  return (
    <DeletionDialog
      kind="environment"
      name={name}
      ends={[
        "Its API keys stop within a second, and open streams of its applications close.",
        "The states of all flags in it are gone. The other environments keep theirs.",
        "Schedules in it are cancelled.",
      ]}
      send={() =>
        unwrap(api.DELETE(environmentRoute, { params: { path, query: { confirm: id } } }))
      }
      onClose={onClose}
    />
  );
}

type CreateEnvironmentDialogProps = { projectId: string; onClose: () => void };

function CreateEnvironmentDialog({ projectId, onClose }: CreateEnvironmentDialogProps) {
  const { api } = useOperatorSession();
  const sendOnce = useSendOnce();
  const path = { projectId };
  const create = (name: string) =>
    sendOnce({ name }, (header) =>
      unwrap(api.POST(environmentsRoute, { params: { path, header }, body: { name } })),
    );
  return (
    <NameDialog
      title="Create an environment"
      action="Create environment"
      description="Every flag starts off in it. A project has at most 50 environments."
      send={create}
      onClose={onClose}
    />
  );
}
