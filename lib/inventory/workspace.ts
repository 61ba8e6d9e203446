import Joi from 'joi';

export interface Workspace {
    readonly id: number;
    readonly name: string;
    readonly boundary: string | null;
    readonly description: string | null;
    readonly owner_id: number | null;
    readonly limit_to_network: boolean;
    readonly created_at: Date;
    readonly updated_at: Date;
}

/** Name of the workspace that exists from the start and receives what names no other. */
export const DEFAULT_WORKSPACE = 'default';

/** The fields in the order in which they go out. */
export const workspaceSchema: Joi.ObjectSchema<Workspace> = Joi.object<Workspace, true>({
    id: Joi.number().integer().required(),
    name: Joi.string().required(),
    boundary: Joi.string().allow(null).required(),
    description: Joi.string().allow(null).required(),
    owner_id: Joi.number().integer().allow(null).required(),
    limit_to_network: Joi.boolean().required(),
    created_at: Joi.date().required(),
    updated_at: Joi.date().required(),
});
