import type { CreateGrant, Role } from "../api/schema.d.ts";
import { includes } from "../session/person.ts";
import { Checkbox, Select } from "../ui/fields.tsx";
import { grantSentence, type Projects } from "./grant-sentence.ts";
import { type OfferedProject, offeredProjects, offeredRoles } from "./may-give.ts";
import styles from "./people.module.css";
import type { OwnRoles } from "./people-queries.ts";

/** A role with its scope, as the fields have it. */
type RoleDraft = {
  role: Role;
  /** `organization`, or the id of a project. */
  where: string;
  /** Null for the whole project. */
  environments: readonly string[] | null;
};

const organizationWide = "organization";

/** Returns the first choice: viewer in the whole organization, or in the first project where the person gives roles. */
export function firstRole(own: OwnRoles): RoleDraft {
  if (includes(own.role, "admin"))
    return { role: "viewer", where: organizationWide, environments: null };
  const [project] = offeredProjects(own);
  if (project?.isWhole === false) return { role: "editor", where: project.id, environments: [] };
  return { role: "viewer", where: project?.id ?? "", environments: null };
}

export function scopeOf({ where, environments }: RoleDraft, own: OwnRoles): CreateGrant["scope"] {
  if (where === organizationWide) return { organization: own.id };
  return { project: where, ...(environments !== null && { environments: [...environments] }) };
}

export const isRoleComplete = ({ where, environments }: RoleDraft): boolean =>
  where !== "" && environments?.length !== 0;

const notes: Readonly<Record<Role, string>> = {
  viewer: "reads everything except secrets",
  editor: "changes flags",
  approver: "also approves change requests",
  admin: "also manages settings, service users and roles",
  owner: "also manages people and projects",
};

const nameOf = (role: Role): string => role.charAt(0).toUpperCase() + role.slice(1);

type Props = {
  own: OwnRoles;
  projects: Projects;
  subject: CreateGrant["subject"];
  draft: RoleDraft;
  onChange: (draft: RoleDraft) => void;
  error?: string | undefined;
};

/** Chooses a role and where it counts, among those that the person may give. */
export function RoleFields({ own, projects, subject, draft, onChange, error }: Props) {
  const offered = offeredProjects(own);
  const project = offered.find(({ id }) => id === draft.where);
  const change = (changed: Partial<RoleDraft>) =>
    onChange(keepOffered({ ...draft, ...changed }, own, subject));
  const roles = offeredRoles(own, { subject, scope: scopeOf(draft, own) });
  return (
    <>
      <Select
        label="Where"
        value={draft.where}
        onChange={(where) => change({ where, environments: firstEnvironments(where, offered) })}
        options={[
          ...(includes(own.role, "admin")
            ? [{ value: organizationWide, label: "The whole organization" }]
            : []),
          ...offered.map(({ id, name }) => ({ value: id, label: name, note: "project" })),
        ]}
      />
      {project !== undefined && (
        <EnvironmentFields
          project={project}
          chosen={draft.environments}
          onChange={(environments) => change({ environments })}
        />
      )}
      <Select
        label="Role"
        value={draft.role}
        onChange={(role) => change({ role })}
        options={roles.map((role) => ({ value: role, label: nameOf(role), note: notes[role] }))}
        description={roleHelp(roles, draft)}
        error={error}
      />
      {isRoleComplete(draft) && (
        <p role="status" className={styles.sentence}>
          {grantSentence({ role: draft.role, scope: scopeOf(draft, own) }, projects)}.
        </p>
      )}
    </>
  );
}

const firstEnvironments = (where: string, offered: readonly OfferedProject[]) =>
  offered.find(({ id }) => id === where)?.isWhole === false ? [] : null;

/** Replaces a role that cannot be given in the scope by the first one that can. */
function keepOffered(draft: RoleDraft, own: OwnRoles, subject: CreateGrant["subject"]): RoleDraft {
  const roles = offeredRoles(own, { subject, scope: scopeOf(draft, own) });
  return roles.includes(draft.role) ? draft : { ...draft, role: roles[0] ?? draft.role };
}

/** Says why the highest roles are not offered. */
function roleHelp(roles: readonly Role[], { where }: RoleDraft): string | undefined {
  if (roles.includes("owner")) return undefined;
  return where === organizationWide
    ? "Only an owner makes another person an owner."
    : "The role owner exists only in the whole organization.";
}

type EnvironmentFieldsProps = {
  project: OfferedProject;
  chosen: readonly string[] | null;
  onChange: (chosen: readonly string[] | null) => void;
};

/** Chooses the whole project or some of its environments. Environments without the role admin are disabled. */
function EnvironmentFields({ project, chosen, onChange }: EnvironmentFieldsProps) {
  const toggle = (id: string, isChosen: boolean) =>
    onChange([...(chosen ?? []).filter((other) => other !== id), ...(isChosen ? [id] : [])]);
  return (
    <>
      <Select<"all" | "some">
        label="Environments"
        value={chosen === null ? "all" : "some"}
        onChange={(which) => onChange(which === "all" ? null : [])}
        options={[
          ...(project.isWhole ? [{ value: "all" as const, label: "The whole project" }] : []),
          { value: "some", label: "Only chosen environments" },
        ]}
        {...(!project.isWhole && {
          description: `The whole project needs the role admin there; yours is ${project.role ?? "none"}.`,
        })}
      />
      {chosen !== null && (
        <fieldset className={styles.choices}>
          <legend className="visually-hidden">Chosen environments</legend>
          {project.environments.map(({ id, name, role }) => (
            <Checkbox
              key={id}
              isSelected={chosen.includes(id)}
              isDisabled={!includes(role, "admin")}
              onChange={(isChosen) => toggle(id, isChosen)}
            >
              {name}
              {!includes(role, "admin") && ` (your role is ${role ?? "none"})`}
            </Checkbox>
          ))}
        </fieldset>
      )}
    </>
  );
}
