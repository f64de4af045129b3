/** A place of a project where each of its flags has a state of its own. It never changes. */
export type Environment = { id: string; projectId: string; name: string; createdAt: Date };
