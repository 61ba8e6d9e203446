import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { checked, nameSchema } from '../schema-validation.ts';

/** Another name of a workspace. */
export interface NewWorkspaceName {
    readonly to: string;
}

/** No `.` and no `..`: as a segment of a path they are taken out of it before anybody sees them. */
const NAMEABLE = /[^.]|\.{3}/;

/** What a new name must be. */
const OTHER_THAN_DOTS = 'a name other than . and .., which a path cannot have';

/** The rule of the name of a workspace that may have to be made. */
export const newWorkspaceSchema: Joi.StringSchema = nameSchema.trim().pattern(NAMEABLE, OTHER_THAN_DOTS);

/** The rule of a {@link NewWorkspaceName}. */
export const newWorkspaceNameSchema: Joi.ObjectSchema<NewWorkspaceName> = Joi.object<NewWorkspaceName, true>({
    to: newWorkspaceSchema.required().description('Its new name, which no other workspace has'),
});

/** The name, trimmed. @throws ScanwireError `INVALID_INPUT`, field `to`. */
export function newWorkspaceName(to: string): string {
    return checked(newWorkspaceNameSchema, { to }).to;
}

/** Whether a new workspace may be called so. */
export function isNameable(name: string): boolean {
    return NAMEABLE.test(name);
}

/** What everything rejects with for a new workspace that is not {@link isNameable}. */
export function unnameableWorkspace(): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Workspace must be ${OTHER_THAN_DOTS}`, { field: 'workspace' });
}

/** What every store rejects with for a name that a workspace has already. */
export function workspaceNameTaken(to: string, cause?: unknown): ScanwireError {
    return new ScanwireError('CONFLICT', `There is a workspace ${JSON.stringify(to)} already`, { field: 'to', cause });
}

/** What everything rejects with for a name that no workspace has that is to be seen. */
export function unknownWorkspace(name: string, field: string = 'workspace'): ScanwireError {
    return new ScanwireError('NOT_FOUND', `Unknown workspace ${JSON.stringify(name)}`, { field });
}
