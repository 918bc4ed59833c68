/**
 * Limits MCP calls: their sessions as keys, and Nest's own MCP contexts.
 * @module nestjs-sluice/mcp
 */
export { bySession, McpReader } from './mcp.reader.js';
