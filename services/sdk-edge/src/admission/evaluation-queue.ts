/**
 * Queue of costly evaluations, which decides the next one to run. A few organizations share the time, and each of them
 * runs a few evaluations. Other organizations and evaluations wait in the order of arrival.
 */
export type EvaluationQueue = {
  add(organizationId: string, evaluation: SlicedEvaluation, nowMs: number): QueuedEvaluation;
  remove(evaluation: QueuedEvaluation): void;
  /** The organization whose slice is next. */
  nextOrganization(): Organization | undefined;
  /** Ends the slice of an organization. After its turn it goes behind the organizations that wait. */
  endSlice(organization: Organization): void;
  /** Starts the oldest waiting evaluation of an organization. */
  start(organization: Organization): QueuedEvaluation | undefined;
  /** Evaluations of all organizations that have not started; oldest first. */
  readonly waiting: ReadonlySet<QueuedEvaluation>;
  /** The waiting evaluations beyond a number: the newest of the organizations that have the most. */
  excessOver(max: number): readonly QueuedEvaluation[];
  isEmpty(): boolean;
};

export type SlicedEvaluation = {
  steps: Generator<undefined, void>;
  /** Called instead of the first step: too many evaluations wait, or this one has waited too long. */
  reject: () => void;
};

export type QueuedEvaluation = SlicedEvaluation & {
  readonly organization: Organization;
  readonly sinceMs: number;
};

export type Organization = {
  readonly id: string;
  /** Next to run first. */
  readonly running: Set<QueuedEvaluation>;
  /** Oldest first. */
  readonly waiting: Set<QueuedEvaluation>;
  /** Time used in the current turn. */
  usedMs: number;
};

/** Maximum number of organizations that share the time. With more, all would finish late under overload. */
export const maxSharing = 3;

/**
 * Length of a turn. It is longer than nearly every evaluation, because a turn that ends before its evaluation delays
 * both organizations.
 */
export const shareMs = 1_000;

export function createEvaluationQueue(): EvaluationQueue {
  /** Organizations that run evaluations; next to run first. */
  const sharing = new Map<string, Organization>();
  /** Organizations that wait for a turn; oldest first. */
  const queued = new Map<string, Organization>();
  const waiting = new Set<QueuedEvaluation>();

  function findOrQueue(id: string): Organization {
    const known = sharing.get(id) ?? queued.get(id);
    if (known !== undefined) return known;
    const organization = { id, running: new Set(), waiting: new Set(), usedMs: 0 } as Organization;
    queued.set(id, organization);
    return organization;
  }

  function remove(evaluation: QueuedEvaluation): void {
    waiting.delete(evaluation);
    evaluation.organization.waiting.delete(evaluation);
    evaluation.organization.running.delete(evaluation);
  }

  return {
    add(organizationId, evaluation, nowMs) {
      const organization = findOrQueue(organizationId);
      const added = { ...evaluation, organization, sinceMs: nowMs };
      organization.waiting.add(added);
      waiting.add(added);
      return added;
    },
    remove,
    nextOrganization() {
      for (const [id, organization] of queued) {
        if (sharing.size >= maxSharing) break;
        queued.delete(id);
        sharing.set(id, organization);
      }
      const [first] = sharing.values();
      return first;
    },
    endSlice(organization) {
      sharing.delete(organization.id);
      if (organization.running.size + organization.waiting.size === 0) return;
      const isOver = organization.usedMs >= shareMs && queued.size > 0;
      if (isOver) organization.usedMs = 0;
      (isOver ? queued : sharing).set(organization.id, organization);
    },
    start(organization) {
      const [oldest] = organization.waiting;
      if (oldest === undefined) return undefined;
      remove(oldest);
      organization.running.add(oldest);
      return oldest;
    },
    waiting,
    excessOver(max) {
      if (waiting.size <= max) return [];
      /** The oldest evaluation of each organization, then the second of each, and so on. */
      const rounds: QueuedEvaluation[][] = [];
      for (const organization of [...sharing.values(), ...queued.values()])
        for (const [round, evaluation] of [...organization.waiting].entries()) {
          rounds[round] ??= [];
          rounds[round].push(evaluation);
        }
      return rounds.flat().slice(max);
    },
    isEmpty: () => sharing.size + queued.size === 0,
  };
}
