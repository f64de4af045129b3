import { KeyRound } from "lucide-react";
import { useState } from "react";
import type { Environment, Project, User } from "../api/schema.d.ts";
import { IssueKeyButton } from "../keys/issue-key-dialog.tsx";
import { KeyList } from "../keys/key-list.tsx";
import { useOperatorSession } from "../session/session.tsx";
import { Select } from "../ui/fields.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import styles from "./operator.module.css";
import { useUsers } from "./operator-queries.ts";
import { Section } from "./section.tsx";

/** The API keys of one environment, which is chosen here. */
export function KeysSection({ project }: { project: Project }) {
  const { environments } = project;
  const users = useUsers(project.organization_id);
  const [chosenId, setChosenId] = useState<string>();
  const environment = environments.find(({ id }) => id === chosenId) ?? environments[0];
  if (environment === undefined)
    return (
      <Section title="API keys">
        <EmptyState icon={KeyRound} title="There is no environment">
          Create an environment first. Every API key belongs to one.
        </EmptyState>
      </Section>
    );
  return (
    <QueryView query={users} label="Loading the users">
      {(all) => (
        <EnvironmentKeys
          project={project}
          environment={environment}
          users={all}
          onChoose={setChosenId}
        />
      )}
    </QueryView>
  );
}

type EnvironmentKeysProps = {
  project: Project;
  environment: Environment;
  users: readonly User[];
  onChoose: (environmentId: string) => void;
};

function EnvironmentKeys({ project, environment, users, onChoose }: EnvironmentKeysProps) {
  const { api } = useOperatorSession();
  const place = {
    ...{ api, projectId: project.id, environment },
    ...{ users, own: null, mayRevokeAll: true },
  };
  return (
    <Section
      title="API keys"
      lead="A server key manages flags and signs in to this dashboard. A client key reads flags for one user at a time."
      actions={<IssueKeyButton place={place} />}
    >
      <KeyList
        place={place}
        emailOf={(id) => users.find((user) => user.id === id)?.email ?? "Deleted user"}
        filters={
          <span className={styles.picker}>
            <Select
              label="Environment of the keys"
              isLabelHidden
              value={environment.id}
              onChange={onChoose}
              options={project.environments.map(({ id, name }) => ({ value: id, label: name }))}
            />
          </span>
        }
      />
    </Section>
  );
}
