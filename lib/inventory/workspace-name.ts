import Joi from 'joi';
import { checked } from '../checked.ts';
import { nameSchema } from '../name-schema.ts';

const schema = Joi.object<{ workspace: string }, true>({
    workspace: nameSchema.trim().required(),
});

/**
 * The name of a workspace, trimmed: 1 to 255 characters, none of them a control character.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `workspace`.
 */
export function workspaceName(name: unknown): string {
    return checked(schema, { workspace: name as string }).workspace;
}
