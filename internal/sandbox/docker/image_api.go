package docker

import (
	"context"
	"io"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
)

// imageAPI is the part of api that deals in images.
type imageAPI interface {
	ImageBuild(ctx context.Context, buildContext io.Reader, o build.ImageBuildOptions) (build.ImageBuildResponse, error)
	ImageImport(ctx context.Context, from image.ImportSource, ref string, o image.ImportOptions) (io.ReadCloser, error)
	ImageInspect(ctx context.Context, ref string, o ...client.ImageInspectOption) (image.InspectResponse, error)
	ImageList(ctx context.Context, o image.ListOptions) ([]image.Summary, error)
	ImageLoad(ctx context.Context, tar io.Reader, o ...client.ImageLoadOption) (image.LoadResponse, error)
	ImagePull(ctx context.Context, ref string, o image.PullOptions) (io.ReadCloser, error)
	ImageRemove(ctx context.Context, ref string, o image.RemoveOptions) ([]image.DeleteResponse, error)
	ImageSave(ctx context.Context, refs []string, o ...client.ImageSaveOption) (io.ReadCloser, error)
}
