# what this directory builds
