import { Check, ChevronsUpDown, Plus } from "lucide-react";
import { Button } from "react-aria-components";
import { useChosen, useEnvironment } from "../session/environment.tsx";
import { isPerson } from "../session/person.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { CautionBadge } from "../state/caution.tsx";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { Select } from "../ui/fields.tsx";
import { Menu } from "../ui/menu.tsx";
import styles from "./shell.module.css";

/** The names of the project and the environment. */
export function ScopeNames() {
  const { me } = useKeySession();
  const chosen = useChosen();
  return (
    <>
      <bdi>{me.project.name}</bdi>
      {chosen.kind !== "unknown" && <bdi>{chosen.environment.name}</bdi>}
    </>
  );
}

/** Chooses the project, by the key that is used, and the environment. */
export function ScopeSwitcher({ onAddKey }: { onAddKey: () => void }) {
  const { me } = useKeySession();
  const { keys, switchTo } = useSessions();
  const chosen = useChosen();
  const { choose } = useEnvironment();
  return (
    <div className={styles.scope}>
      <Menu
        label="Project and key"
        trigger={
          <Button className={styles.scopeButton ?? ""}>
            <span className={styles.scopeText}>
              <span className={styles.scopeName}>{me.project.name}</span>
              <span className={styles.scopeNote}>
                <bdi>{me.organization.name}</bdi> · {me.user.email}
              </span>
            </span>
            <ChevronsUpDown size={16} aria-hidden />
          </Button>
        }
        entries={[
          ...keys.map((key) => ({
            id: key.me.key.id,
            label: key.me.project.name,
            icon: (
              <Check
                size={16}
                role="img"
                aria-label="Current"
                visibility={key.me.key.id === me.key.id ? "visible" : "hidden"}
              />
            ),
            note: isPerson(key.token)
              ? key.me.organization.name
              : `${key.me.key.name} · ${key.me.user.email}`,
            onAction: () => void switchTo(key.token),
          })),
          {
            id: "add",
            label: "Use another key",
            icon: <Plus size={16} aria-hidden />,
            onAction: onAddKey,
          },
        ]}
      />
      <Select
        label="Environment"
        value={chosen.kind === "found" ? chosen.environment.name : ""}
        onChange={choose}
        options={me.environments.map(({ name, protected: protection }) => ({
          value: name,
          label: name,
          ...(protection !== null && { note: "Protected" }),
        }))}
      />
      {chosen.kind === "found" && chosen.environment.protected !== null && (
        <p className={styles.cautionNote}>
          <ProtectedBadge /> Changes need approval
        </p>
      )}
      {chosen.kind === "found" && chosen.environment.caution && (
        <p className={styles.cautionNote}>
          <CautionBadge /> Changes ask first
        </p>
      )}
    </div>
  );
}
