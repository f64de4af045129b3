import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem } from "../api/problem.ts";
import type { CreateProject, Organization } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { projectsRoute, useWrite } from "./operator-queries.ts";

const usualEnvironments = "development\nstaging\nproduction";

type CreateProjectDialogProps = {
  organization: Organization;
  /** Number of projects that the organization has. */
  count: number;
  onClose: () => void;
};

/** Creates a project with its environments, and opens its page. */
export function CreateProjectDialog({ organization, count, onClose }: CreateProjectDialogProps) {
  const [name, setName] = useState("");
  const [environments, setEnvironments] = useState(usualEnvironments);
  const { mutate, isPending, error } = useCreateProject(organization.id, onClose);
  const isTaken = error instanceof ApiProblem && error.status === 409;
  const isOverLimit = error instanceof ApiProblem && error.status === 429;
  const { plan, limits } = organization;
  const isFull = limits.projects !== null && count >= limits.projects;
  const names = namesIn(environments);
  return (
    <FormDialog
      title="Create a project"
      action="Create project"
      onClose={onClose}
      onSubmit={() => mutate({ name: name.trim(), environments: names })}
      isPending={isPending}
      isComplete={name.trim() !== "" && names.length > 0}
      error={isTaken || isOverLimit ? undefined : error}
    >
      {(isOverLimit || isFull) && (
        <Warning>
          The plan {plan} allows {limits.projects} projects, and the organization has {count}.
          Change its plan or delete a project first. Waiting does not help.
        </Warning>
      )}
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        autoFocus
        isRequired
        error={isTaken ? "Another project of the organization has this name." : undefined}
      />
      <TextField
        label="Environments"
        value={environments}
        onChange={setEnvironments}
        rows={4}
        isCode
        isRequired
        description="One name per line. You can add more later."
      />
    </FormDialog>
  );
}

const namesIn = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");

function useCreateProject(organizationId: string, onClose: () => void) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const sendOnce = useSendOnce();
  return useWrite(
    (body: CreateProject) =>
      sendOnce(body, (header) =>
        unwrap(api.POST(projectsRoute, { params: { path: { organizationId }, header }, body })),
      ),
    ({ id }) => {
      onClose();
      void navigate({
        to: "/organizations/$organizationId/projects/$projectId",
        params: { organizationId, projectId: id },
      });
    },
  );
}
