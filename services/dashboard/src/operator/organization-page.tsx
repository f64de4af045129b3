import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Organization } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { bytes } from "../ui/numbers.ts";
import { type BackLink, Page } from "../ui/page.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { DeletionCard } from "./deletion-card.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import { RenameDialog } from "./name-dialog.tsx";
import styles from "./operator.module.css";
import { organizationRoute, useOrganization } from "./operator-queries.ts";
import { PlanDialog } from "./plan-dialog.tsx";
import { limitLabels, limitNames, limitText } from "./plans.ts";
import { ProjectsSection } from "./projects-section.tsx";
import { UsersSection } from "./users-section.tsx";

/** An organization: its plan, projects and users. */
export function OrganizationPage() {
  const { organizationId } = useParams({ from: "/organizations/$organizationId" });
  const query = useOrganization(organizationId);
  if (query.data !== undefined) return <LoadedOrganization organization={query.data} />;
  return (
    <Page title="Organization" back={toOrganizations}>
      <QueryView query={query} label="Loading the organization">
        {() => null}
      </QueryView>
    </Page>
  );
}

const toOrganizations: BackLink = { link: { to: "/" }, label: "Organizations" };

function LoadedOrganization({ organization }: { organization: Organization }) {
  const [dialog, setDialog] = useState<"rename" | "plan" | "delete">();
  const { id, name, plan, limits, configuration_bytes: rules } = organization;
  return (
    <Page
      title={name}
      back={toOrganizations}
      facts={
        <>
          <code>{id}</code>
          <CopyButton text={id} label="Copy the id" />
          <Badge tone="accent">{plan}</Badge>
        </>
      }
      actions={
        <>
          <Button onPress={() => setDialog("rename")}>Rename</Button>
          <Button onPress={() => setDialog("plan")}>Change plan</Button>
        </>
      }
    >
      <Card title={`Limits of the ${plan} plan`}>
        <dl className={styles.facts}>
          {limitNames.map((key) => (
            <div key={key}>
              <dt>{limitLabels[key]}</dt>
              <dd>{limitText(limits, key)}</dd>
              {key === "configuration_bytes" && (
                <dd className={styles.used}>{bytes(rules.used)} used</dd>
              )}
            </div>
          ))}
        </dl>
      </Card>
      <ProjectsSection organization={organization} />
      <UsersSection organizationId={id} />
      <DeletionCard kind="organization" name={name} onDelete={() => setDialog("delete")} />
      <OrganizationDialog
        organization={organization}
        dialog={dialog}
        onClose={() => setDialog(undefined)}
      />
    </Page>
  );
}

type OrganizationDialogProps = {
  organization: Organization;
  dialog: "rename" | "plan" | "delete" | undefined;
  onClose: () => void;
};

function OrganizationDialog({ organization, dialog, onClose }: OrganizationDialogProps) {
  const { api } = useOperatorSession();
  const navigate = useNavigate();
  const path = { organizationId: organization.id };
  if (dialog === "plan") return <PlanDialog organization={organization} onClose={onClose} />;
  if (dialog === "rename")
    return (
      <RenameDialog
        title="Rename the organization"
        name={organization.name}
        rename={(name) =>
          unwrap(api.PATCH(organizationRoute, { params: { path }, body: { name } }))
        }
        onClose={onClose}
      />
    );
  if (dialog === "delete")
    return (
      <DeletionDialog
        kind="organization"
        name={organization.name}
        ends={[
          "All its API keys stop within a second, and open streams of its applications close.",
          "Its projects, environments and flags are gone. Applications use their default values.",
          "Its schedules are cancelled. Its webhooks are deleted, without an event.",
          "Its users are deleted. The audit log of its projects stays until its retention ends.",
        ]}
        send={() =>
          unwrap(
            api.DELETE(organizationRoute, {
              params: { path, query: { confirm: organization.id } },
            }),
          )
        }
        leave={() => navigate({ to: "/" })}
        onClose={onClose}
      />
    );
  return null;
}
